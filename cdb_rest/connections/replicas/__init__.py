"""Reads from streaming replicas, whose results are never older than the request.

A replica is always slightly behind the primary. So the primary confirms what was read there. For a lookup, it confirms
afterwards that the tag is still in the state from which the result was made. For other reads, it gives the position of
its log beforehand, which the replica must have reached. If the primary does not confirm a result, it is read from the
primary. A frozen tag needs no confirmation, because it never changes again.
"""
