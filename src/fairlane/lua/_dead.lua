-- Tasks given up. What cannot be read is set aside as a dead letter too, by whoever meets it first,
-- and its neighbours never notice: where a record stands among others, `redis.pcall` reads it.

-- A task given up, with its cause, error and whole payload, and the site that it would come back
-- to; the oldest makes room.
local function bury(d, id, from, cause, detail)
  conclude(id, from, 'dead', d.mac, d.lane.name, cause, 'cause', cause, 'error', detail,
    'dead_at', now)
  call('HDEL', TASK .. id, 'due_at')
  if d.site ~= 'default' and not d.site_is_set then
    call('HSET', TASK .. id, 'site', d.site)
  end
  call('LPUSH', DEAD_LETTER, id)
  if call('LLEN', DEAD_LETTER) > C.dead_letter_cap then
    local dropped = TASK .. call('RPOP', DEAD_LETTER)
    -- The list may name what is no dead letter, if another program wrote it.
    if redis.pcall('HGET', dropped, 'state') == 'dead' then
      call('DEL', dropped)
    end
    add_to(TOTALS, 'dead_dropped', 1)
  end
end

-- Count and tell what is no task's end: an entry of a list that leads to nothing, or elsewhere.
local function note_corrupt(mac, L, id, detail)
  add_to(TOTALS, 'corrupt', 1)
  emit('corrupt', mac, L.name, id, detail)
end

-- Whose a task without a readable record was, nobody knows.
local function nobody(L)
  return { mac = '', lane = L, site = 'default' }
end

-- Make a dead letter, with cause `corrupt`, of what a key holds that is no usable record; all that
-- it holds is kept. What is no hash becomes the payload: a string as it is, else as DUMP tells it.
local function quarantine(d, id, from, detail)
  local key, created = TASK .. id, nil
  local kind = call('TYPE', key).ok
  if kind == 'none' then
    return note_corrupt(d.mac, d.lane, id, 'an id without a record')
  elseif kind ~= 'hash' then
    local held = call(kind == 'string' and 'GET' or 'DUMP', key)
    call('DEL', key)
    call('HSET', key, 'payload', held)
    detail = 'its record was a ' .. kind
  else
    call('PERSIST', key)
    created = num(call('HGET', key, 'created_at'))
  end
  call('HSET', key, 'mac', d.mac, 'lane', d.lane.name, 'created_at', created or now,
    'expires_at', now)
  add_to(TOTALS, 'corrupt', 1)
  bury(d, id, from, 'corrupt', detail)
end

local function is_lane(name)
  return string.find(',' .. C.lanes .. ',', ',' .. name .. ',', 1, true)
end

local function is_mac(mac)
  return string.find(mac, '^%x%x:[%x:]+$') and (#mac == 17 or #mac == 23)
end

-- Whether a record, read by `redis.pcall`, lacks what every step needs.
local function is_flawed(f, mac, lane, created, expires)
  return f.err or not (mac and lane and num(created) and num(expires))
    or not is_lane(lane) or not is_mac(mac)
end

local function is_state(state)
  return state and (TRANSITIONS[state] or state == 'done' or state == 'failed'
    or state == 'expired' or state == 'cancelled')
end

-- Set aside what a device's queue held instead of a pending task of its own; true when the id is
-- gone from here for good. An entry that leads to a task elsewhere is only dropped; a task that is
-- nowhere else is this device's, whatever its record says.
local function set_aside(d, id, f, state, mac, lane)
  local is_own = mac == d.mac and lane == d.lane.name
  local function waits_elsewhere()
    return not is_own
      and type(redis.pcall('LPOS', QUEUE .. mac .. lane_of(lane).suffix, id)) == 'number'
  end
  if is_state(state) and mac and lane and (state ~= 'pending' or waits_elsewhere()) then
    note_corrupt(d.mac, d.lane, id, 'a queued id of a task of ' .. mac .. ' that is ' .. state)
    return false
  end
  quarantine(d, id, 'pending', f.err and 'its record was no hash'
    or is_own and 'its record lacks a field' or 'its record was changed')
  return true
end
