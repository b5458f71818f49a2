-- Make devices and tasks what `_audit` says that they should be. What is right is left alone, so a
-- second time nothing changes. Counts over all devices follow those of the device that is mended;
-- `mend_all_sums` counts them anew.

-- Write a device's counts as they were counted.
local function mend_counts(mac, right)
  local stored, meta, site = right.stored, META .. mac, right.lanes[1].d.site
  local set, gone = {}, {}
  local function put(field, value, keep)
    if keep then
      set[#set + 1], set[#set + 2] = field, value
    else
      gone[#gone + 1] = field
    end
  end
  for _, here in ipairs(right.lanes) do
    local d, own, delta = here.d, here.d.lane.field, here.pending - here.d.pending
    if delta ~= 0 then
      add_to(VIRTUAL .. d.lane.suffix, 'pending', delta)
      add_to(GLOBAL_PENDING, nil, delta)
      count_site(site, delta)
    end
    if own ~= '' then
      put(own .. 'pending_count', here.pending, here.pending > 0)
      put(own .. 'oldest_created_at', here.oldest or '', here.pending > 0)
      put(own .. 'leased', here.leased, here.leased > 0)
    end
    local backoff = call('ZSCORE', BACKOFF .. d.lane.suffix, mac)
    put(own .. 'unschedulable_until', backoff, backoff)
  end
  put('pending_count', right.pending, right.pending > 0)
  put('oldest_created_at', right.oldest or '', right.pending > 0)
  put('leased', right.leased, right.leased > 0)
  if #set > 0 then
    call('HSET', meta, unpack(set))
  end
  if #gone > 0 then
    call('HDEL', meta, unpack(gone))
  end
  if right.pending > 0 then
    call('ZADD', MACS, 'NX', now, mac)
  else
    call('ZREM', MACS, mac)
  end
  call(right.pending > C.max_per_mac_pending and 'SADD' or 'SREM', OVERLOADED, mac)
  if right.pending == 0 and right.leased == 0 then
    local d = right.lanes[1].d
    for _ = 1, call('HLEN', meta) do
      local field = left_over(d)
      if field ~= '' then
        call('HDEL', meta, field)
      end
    end
  end
  return stored
end

-- Put a device with right counts where it belongs in a lane, and its tag with it.
local function mend_place(d)
  local suffix, fair = d.lane.suffix, C.policy == 'fair'
  if call('ZSCORE', TURNS, d.turn_id) and call('EXISTS', active_key(d)) == 0 then
    call('ZREM', TURNS, d.turn_id)
  end
  local order = place_of(d)
  local score = tonumber(call('ZSCORE', order.schedule, d.mac))
  local should = should_go(d, call('LLEN', d.queue))
  if score and should and (fair and (score > 0 or score % 1 ~= 0)) then
    -- No tag: it starts where the order is.
    call('ZADD', order.schedule, -free_tag(order, (virtual_time(order))), d.mac)
    score = tonumber(call('ZSCORE', order.schedule, d.mac))
  end
  if fair and d.held and (should or d.leased == 0) then
    local tag = d.held
    d.held = nil
    call('HDEL', d.hold, d.hold_field)
    if not should and not score then
      put_tag(d, tag)
    end
  end
  if score and not should then
    leave(d)
  elseif should and not score then
    seat(d)
  end
  if fair and (should or d.leased > 0) then
    local remembered = tonumber(call('ZSCORE', order.finish, d.mac))
    call('ZREM', order.finish, d.mac)
    if not should and not d.held then
      put_tag(d, math.max(remembered or 0, (virtual_time(order))))
    end
  end
  if should then
    if fair then
      call('ZADD', WAITING .. suffix, math.max(d.oldest or now, d.served), d.mac)
    else
      rank(d)
    end
    call('ZREM', FLOOR .. suffix, d.mac)
    set_floor(d)
  else
    call('ZREM', WAITING .. suffix, d.mac)
    call('ZREM', FLOOR .. suffix, d.mac)
  end
end

-- Mend a device if anything of it is wrong; returns what was.
local function mend_device(mac, counts, site)
  local flaws, right = audit_device(mac, counts, site)
  if #flaws == 0 then
    return flaws
  end
  mend_counts(mac, right)
  local whole
  for name in string.gmatch(C.lanes, '[^,]+') do
    local d = device(mac, lane_of(name), whole)
    whole = d.whole
    for _, other in ipairs({ 'default', site ~= '' and site or nil }) do
      if other ~= d.site and C.policy == 'fair' then
        call('ZREM', order_of_devices(d.lane, other).schedule, mac)
        step_back(d.lane, other)
      end
    end
    mend_place(d)
  end
  return flaws
end

-- Take out of every place a task whose record is gone or cannot be read, and put what is left aside
-- as a dead letter; returns its device if that is known.
local function forget_task(id, queue, task)
  call('ZREM', DEADLINES, id)
  call('ZREM', DELAYED, id)
  for name in string.gmatch(C.lanes, '[^,]+') do
    call('ZREM', INFLIGHT .. lane_of(name).suffix, id)
  end
  call('LREM', queue or task.queue or DEAD_LETTER, 0, id)
  if task.queue then
    call('LREM', task.queue, 0, id)
  end
  local L = lane_of(task.lane and is_lane(task.lane) and task.lane
    or string.match(C.lanes, '[^,]+'))
  quarantine(task.mac and device(task.mac, L) or nobody(L), id, 'pending',
    'its record cannot be read')
  return task.mac
end

-- Put a task where its record says; returns what was wrong, what was looked through, its device.
local function mend_task(id, queue, spent)
  local flaws, looked, task = audit_task(id, queue, spent)
  if #flaws == 0 then
    return flaws, looked
  end
  local state = task.state
  if task.is_bad or task.is_gone then
    return flaws, looked, forget_task(id, queue, task)
  end
  if task.waits and task.expires then
    call('ZADD', DEADLINES, task.expires, id)
  else
    call('ZREM', DEADLINES, id)
  end
  if state == 'delayed' then
    call('ZADD', DELAYED, 'NX', task.due or now, id)
  else
    call('ZREM', DELAYED, id)
  end
  for name in string.gmatch(C.lanes, '[^,]+') do
    if task.leased and task.lane == name then
      -- Its lease begins anew: whoever runs it reports, or the sweep takes it back.
      call('ZADD', INFLIGHT .. lane_of(name).suffix, 'NX', now + C.lease_ms, id)
    else
      call('ZREM', INFLIGHT .. lane_of(name).suffix, id)
    end
  end
  if queue and queue ~= task.queue and queue ~= DEAD_LETTER then
    call('LREM', queue, 0, id)
  end
  if task.queue then
    local places = #call('LPOS', task.queue, id, 'COUNT', 0)
    if state ~= 'pending' then
      call('LREM', task.queue, 0, id)
    elseif places > 1 then
      call('LREM', task.queue, 1 - places, id)
    elseif places == 0 then
      push(device(task.mac, lane_of(task.lane)), id, task.created, true)
    end
  end
  if state == 'dead' and not call('LPOS', DEAD_LETTER, id) then
    call('LPUSH', DEAD_LETTER, id)
  elseif state ~= 'dead' and queue == DEAD_LETTER then
    call('LREM', DEAD_LETTER, 0, id)
  end
  local lives = call('PTTL', TASK .. id) > 0
  if TRANSITIONS[state] and lives then
    call('PERSIST', TASK .. id)
  elseif not TRANSITIONS[state] and not lives then
    call('PEXPIRE', TASK .. id, C.result_ttl_ms)
  end
  return flaws, looked, task.mac
end
