-- Read whether the store came back empty or older, and since when it has lost nothing.
--
-- Returns  the epoch as field, value, …
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
return call('HGETALL', EPOCH)
