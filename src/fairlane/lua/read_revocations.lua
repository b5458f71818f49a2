-- Read which tokens were revoked since a time, and what time it is.
--
-- Returns  {clock, token_id, revoked_at, expires_at, …}, oldest first
-- Errors   none
-- Twice    reads again
-- Flags    no-writes
local since, limit = ARGV[2], ARGV[3]
local reply = { now }
local found = call('ZRANGE', REVOKED, since, '+inf', 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
for at = 1, #found, 2 do
  local expires = tonumber(call('ZSCORE', TOKENS, found[at])) or 0
  reply[#reply + 1] = found[at]
  reply[#reply + 1] = tonumber(found[at + 1])
  reply[#reply + 1] = expires
end
return reply
