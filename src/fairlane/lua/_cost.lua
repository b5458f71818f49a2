-- What a task costs: worker time. It is estimated at the claim and settled when the lease ends.

-- One class up to 1 KiB of payload, and one more for each factor of four. A record says only what
-- is over 0.
local function size_class(payload)
  return #payload <= 1024 and 0 or math.ceil(math.log(#payload / 1024) / math.log(4))
end

-- The cost of a task before it runs, in units of a tag: the mean run time of its type and size, or
-- the device's own of that type if that is longer. A caller's `cost_ms` counts within ¼ to 4 times
-- that. `means` keeps what was learnt and is read once a call.
local function estimate(d, means, task_type, size, cost_ms)
  local field = 'run_ms:' .. task_type .. ':' .. size
  local own = task_type .. '.run_ms'
  if means[field] == nil then
    local f = call('HMGET', CAPACITY, field, 'run_ms:' .. task_type)
    means[field] = num(f[1]) or num(f[2]) or false
  end
  d.means = d.means or {}
  if d.means[own] == nil then
    d.means[own] = num(call('HGET', d.meta, own)) or 0
  end
  local ms = math.max(means[field] or 0, d.means[own])
  if cost_ms and ms == 0 then
    ms = cost_ms
  elseif cost_ms then
    ms = math.max(ms / 4, math.min(ms * 4, cost_ms))
  elseif ms == 0 then
    -- Nothing ran yet.
    ms = 10
  end
  return math.max(1, math.floor(ms * UNITS_PER_MS))
end

-- What `cost` units move a device's tag by: it pays by its weight, and never nothing.
local function price(d, cost)
  return cost > 0 and math.max(1, math.floor(cost / d.weight)) or math.ceil(cost / d.weight)
end

-- Is a site the only one that has devices in its schedule? Then there is nobody to be fair to, and
-- its tag need not move: another one will start from there.
local function is_alone(L, name)
  local two = call('ZRANGE', SITES .. L.suffix, 0, 1)
  return two[1] == name and not two[2]
end

-- Charge a device and its site `cost` units, or give them back (below 0). `used` is what a lease
-- that ends has used in all, nil while it goes on.
local function pay(d, cost, used)
  if C.policy ~= 'fair' then
    return
  end
  place_of(d)
  if cost ~= 0 or d.held or d.leased > 0 then
    move_tag(d, price(d, cost))
  end
  if used then
    count_work(d.order, used)
  end
  if not is_alone(d.lane, d.site) then
    if cost ~= 0 then
      move_tag(site_of(d.lane, d.site), cost)
    end
    if used then
      count_work(order_of_sites(d.lane), used)
    end
  end
end

-- Keep moving averages of how long tasks run: of the type and size, of the type, of the lane, and
-- of the device, which was read with `learns`, while it has tasks; the next `save` writes them.
-- What a device has used since it began to wait in the lane is what `inspect_shares` compares.
local function learn(d, task_type, size, ran_ms)
  local fields = { 'run_ms:' .. task_type .. ':' .. size, 'run_ms:' .. task_type,
    'service_ms:' .. d.lane.name }
  local before, set = call('HMGET', CAPACITY, unpack(fields)), {}
  for at = 1, 3 do
    local mean = num(before[at]) or ran_ms
    set[2 * at - 1], set[2 * at] = fields[at], string.format('%.3f', mean + (ran_ms - mean) * 0.1)
  end
  call('HSET', CAPACITY, unpack(set))
  if d.whole.total > 0 or d.whole.leased > 0 then
    local own, used = task_type .. '.run_ms', d.lane.field .. 'used_ms'
    local mean = d.run_ms or ran_ms
    d.learnt = { [own] = string.format('%.3f', mean + (ran_ms - mean) * 0.1) }
    if d.pending > 0 then
      d.learnt[used] = (d.used_ms or 0) + ran_ms
    end
  end
end
