"""`python -m gradcheck.worker FD CONFIG`: the template process; started by gradcheck.runner alone."""

import sys

from gradcheck.worker.template import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
