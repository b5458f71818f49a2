-- Record a stored file, so that tasks may name it.
--
-- Returns  1 when it is new, 0 when it was known, -1 while it is being deleted
-- Errors   none
-- Twice    answers 0, and the file is kept from then on for another file_ttl_ms
local name = ARGV[2]
if call('ZSCORE', DOOMED_FILES, name) then
  return -1
end
return call('ZADD', FILES, now + C.file_ttl_ms, name)
