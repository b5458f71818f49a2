-- What a device may have at once, and how fast: its own limits, set by `configure`.

-- The tokens of a device with a rate: they gather up to one second's worth, and at least one.
local function tokens_left(d)
  local most = math.max(1, d.rate)
  if not d.tokens then
    return most
  end
  return math.min(most, d.tokens + math.max(0, now - d.tokens_at) * d.rate / 1000)
end

-- When a device without a whole token gets one, or nil when it has one. A millionth is forgiven:
-- tokens are sums of fractions.
local function token_due(d)
  local missing = d.rate and 1 - tokens_left(d) or 0
  return missing > 0.000001 and now + math.ceil(missing * 1000 / d.rate) or nil
end

-- How many more tasks a device may be leased now.
local function allowance(d)
  local left = d.max_running and d.max_running - d.whole.leased or math.huge
  if d.rate then
    left = math.min(left, math.floor(tokens_left(d) + 0.000001))
  end
  return math.max(0, left)
end

local function spend_tokens(d, n)
  if d.rate and n > 0 then
    d.tokens, d.tokens_at = math.max(0, tokens_left(d) - n), now
    call('HSET', d.meta, 'tokens', string.format('%.6f', d.tokens), 'tokens_at', now)
  end
end

-- A device with fewer tasks running than it is promised is served before all others.
local function is_below_floor(d)
  return d.min_running and d.whole.leased < d.min_running
end
