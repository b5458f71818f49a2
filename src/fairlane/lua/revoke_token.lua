-- Revoke a token, so that it is refused from now on.
--
-- Returns  1, or 0 when it was revoked before
-- Errors   TOKEN_NOT_FOUND (not issued here, and no end given)
-- Twice    answers 0 and changes nothing
-- Flags    allow-oom
local id, given = ARGV[2], tonumber(ARGV[3])

if call('ZSCORE', REVOKED, id) then
  return 0
end
local expires = math.max(tonumber(call('ZSCORE', TOKENS, id)) or 0, given)
if expires + TOKEN_GRACE_MS <= now then
  return fail('TOKEN_NOT_FOUND', 'token_id: ' .. id .. ' was not issued here, or has expired')
end
forget_tokens(100)
-- Each a little later than the one before, so that whoever reads on misses none.
local last = call('ZRANGE', REVOKED, -1, -1, 'WITHSCORES')[2]
call('ZADD', REVOKED, math.max(now, (tonumber(last) or 0) + 1), id)
call('HSET', TOKEN .. id, 'expires_at', expires, 'revoked_at', now)
keep_token(id, expires)
keep_for(REVOKED, expires - now + TOKEN_GRACE_MS)
return 1
