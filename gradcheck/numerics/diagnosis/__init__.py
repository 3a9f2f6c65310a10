"""What an error looks like: from compared gradients to hedged words such as "backprop is 3 times the numeric gradient".

A hypothesis predicts what backprop is where it is wrong. It is told when it holds for 99 per cent of the wrong
elements within their uncertainties, the plainest first, and together with the place where it holds. How sure the
words are depends on how many elements speak for it beyond the numbers that were fitted: 16 and it "is", two and it
"looks like", one and it "may be". Where nothing holds, the words say which elements are wrong.

    compared     the records
    values       a factor, zero, an offset, noise        numbers: names of factors
    origins      another gradient, the cotangent, an input, one term of a sum
    orders       the cotangent read in another order
    places       reversed, transposed, shifted, permuted, repeated
    lines        factors and terms that depend on some indices alone
    regions      where: a row, a tail, a thread's share
    shapes       a gradient of another shape
    conclude     which of them to tell
"""

from gradcheck.numerics.diagnosis.compared import Compared, Tensor
from gradcheck.numerics.diagnosis.conclude import diagnose

__all__ = ["Compared", "Tensor", "diagnose"]
