-- Record a token that is issued, until it expires.
--
-- Returns  {issued_at, expires_at}
-- Errors   none
-- Twice    answers the same and changes nothing
local id, role, mac, site, name = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local ttl_ms = tonumber(ARGV[7])

local f = call('HMGET', TOKEN .. id, 'issued_at', 'expires_at')
if f[1] then
  return { num(f[1]), num(f[2]) }
end
forget_tokens(100)
call('HSET', TOKEN .. id, 'role', role, 'mac', mac, 'site', site, 'name', name, 'issued_at', now,
  'expires_at', now + ttl_ms)
keep_token(id, now + ttl_ms)
return { now, now + ttl_ms }
