"""Reading from streaming replicas of the database, and never an old answer.

A replica is always a moment behind. So the primary vouches for what was read there: for a lookup, that its tag is still in the
state that the answer was made from; for other reads, beforehand, that the replica has everything that was committed until then.
Where it can't, the primary answers itself. Only of a frozen tag a replica needs no witness: it never changes again.
"""
