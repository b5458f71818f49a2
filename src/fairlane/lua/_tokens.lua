-- Tokens are remembered while they could be believed: until their end, and a minute for clocks that
-- differ. Forgetting goes by the stored end; the keys' own expiry is for when nobody calls.

local TOKEN_GRACE_MS = 60000

-- Keep a key of many tokens until the last of them has ended.
local function keep_for(name, ms)
  if call('PTTL', name) < ms then
    call('PEXPIRE', name, ms)
  end
end

-- Keep a token's record, and the lists, until its end.
local function keep_token(id, expires)
  local ms = expires - now + TOKEN_GRACE_MS
  call('ZADD', TOKENS, expires, id)
  call('PEXPIRE', TOKEN .. id, ms)
  keep_for(TOKENS, ms)
end

-- Forget up to `limit` tokens that have ended.
local function forget_tokens(limit)
  local ended = call('ZRANGE', TOKENS, '-inf', '(' .. now - TOKEN_GRACE_MS, 'BYSCORE', 'LIMIT', 0,
    limit)
  for _, id in ipairs(ended) do
    call('ZREM', TOKENS, id)
    call('ZREM', REVOKED, id)
    call('DEL', TOKEN .. id)
  end
end
