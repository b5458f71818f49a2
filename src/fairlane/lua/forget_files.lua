-- Forget files that were deleted, so that they can be stored again.
--
-- Returns  how many were forgotten
-- Errors   none
-- Twice    answers 0: they are forgotten
-- Flags    allow-oom

local forgotten = 0
for at = 2, #ARGV do
  forgotten = forgotten + call('ZREM', DOOMED_FILES, ARGV[at])
end
return forgotten
