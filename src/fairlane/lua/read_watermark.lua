-- Read the last published watermark.
--
-- Returns  JSON, or nil when none was published for its TTL
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
return call('GET', WATERMARK)
