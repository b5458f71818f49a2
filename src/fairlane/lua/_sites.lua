-- Which site a device belongs to: the one that `configure` set, else the one that came with its
-- tasks, else `default`.

-- Move a device with tasks to another site: its tasks, its leases, and what it is ahead of v.
local function move_to_site(mac, site)
  local moved, first = {}, nil
  for name in string.gmatch(C.lanes, '[^,]+') do
    local d = device(mac, lane_of(name), first and first.whole)
    first = first or d
    leave(d)
    place_of(d)
    local tag = C.policy == 'fair' and tag_of(d)
    moved[#moved + 1] = { d, tag and tag - virtual_time(d.order) or 0, d.leased }
    call('ZREM', d.order.finish, mac)
    call('HDEL', d.hold, d.hold_field)
    if d.leased > 0 then
      count_leases(d, -d.leased)
    end
    step_back(d.lane, d.site)
  end
  for key, sign in pairs({ [first.site] = -1, [site] = 1 }) do
    if key ~= 'default' and first.whole.total > 0 then
      call('INCRBY', SITED_PENDING, sign * first.whole.total)
      if call('HINCRBY', SITES_PENDING, key, sign * first.whole.total) == 0 then
        call('HDEL', SITES_PENDING, key, 'full:' .. key)
      end
    end
  end
  for _, m in ipairs(moved) do
    local d, ahead, leased = m[1], m[2], m[3]
    d.site, d.order, d.held = site, nil, nil
    if leased > 0 then
      count_leases(d, leased)
    end
    if ahead > 0 then
      put_tag(d, virtual_time(place_of(d)) + ahead)
    end
  end
end

-- The site that a task's device should be in: `given`, unless `configure` set another or nothing was
-- given.
local function site_wanted(d, given)
  return (given == '' or d.site_is_set) and d.site or given
end

-- Let an accepted task's device be in `site`. One that has tasks in another one moves, and is then
-- to be seated everywhere.
local function adopt_site(d, site)
  local whole = d.whole
  if whole.site ~= site then
    whole.has_moved = whole.total + whole.leased > 0
    if whole.has_moved then
      move_to_site(d.mac, site)
    end
    call('HSET', d.meta, 'at_site', site)
    whole.site = site
  end
  d.site, d.order, d.held = site, nil, tonumber(call('HGET', d.hold, d.hold_field))
end
