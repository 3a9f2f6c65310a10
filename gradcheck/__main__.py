"""`python -m gradcheck`."""

from gradcheck.cli import main

if __name__ == "__main__":
    main()
