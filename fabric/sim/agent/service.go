package agent

import (
	"slices"
	"time"

	"fabsh/mad"
)

// Services, as in OpenSM (opensm osm_sa_service_record.c): a ServiceKey is not
// checked, but is not shown either. A lease is shown as it was registered.

// saService is a ServiceRecord with the time when its lease ends.
type saService struct {
	mad.ServiceRecord
	LeaseEnd time.Time // zero: never
}

const infiniteLease = 1<<32 - 1

// expired reports whether the lease of s is over.
func (s *saService) expired(now time.Time) bool {
	return !s.LeaseEnd.IsZero() && !now.Before(s.LeaseEnd)
}

var (
	serviceID    = serviceComponent("service_id")
	serviceGID   = serviceComponent("service_gid")
	servicePKey  = serviceComponent("service_p_key")
	serviceLease = serviceComponent("service_lease")
)

func serviceComponent(script string) uint64 { return mad.AttrServiceRecord.Field(script).Mask() }

// changeService adds, changes or deletes a service.
func (r *saRequest) changeService(mask uint64, trusted bool) mad.Status {
	var asked mad.ServiceRecord
	asked.Decode(r.Data)
	if mask&servicePKey != 0 {
		if !r.SA.subnet.HasPKey(r.From, asked.ServicePKey) {
			return mad.StatusRequestInvalid
		}
		if mask&serviceGID != 0 && asked.ServiceGID[0] != 0xff {
			if p := r.SA.subnet.EndPortByGUID(asked.ServiceGID.GUID()); p == nil || !r.SA.subnet.HasPKey(p, asked.ServicePKey) {
				return mad.StatusRequestInvalid
			}
		}
	}
	now := r.SA.subnet.Now()
	r.SA.Services = slices.DeleteFunc(r.SA.Services, func(s saService) bool { return s.expired(now) })
	known := slices.IndexFunc(r.SA.Services, func(s saService) bool {
		return s.ServiceID == asked.ServiceID && s.ServiceGID == asked.ServiceGID && s.ServicePKey == asked.ServicePKey
	})
	switch {
	case r.Method == mad.MethodDelete && known < 0:
		return mad.StatusNoRecords
	case r.Method == mad.MethodDelete:
		asked = r.SA.Services[known].ServiceRecord
		r.SA.Services = slices.Delete(r.SA.Services, known, known+1)
	case mask&(serviceID|serviceGID) != serviceID|serviceGID:
		return mad.StatusRequestInvalid
	case known < 0 && len(r.SA.Services) >= maxKept:
		return mad.StatusNoResources
	default:
		if mask&serviceLease == 0 {
			asked.ServiceLease = infiniteLease
		}
		service := saService{ServiceRecord: asked}
		if asked.ServiceLease != infiniteLease {
			service.LeaseEnd = now.Add(time.Duration(asked.ServiceLease) * time.Second)
		}
		if known >= 0 {
			r.SA.Services[known] = service
		} else {
			r.SA.Services = slices.Insert(r.SA.Services, 0, service)
		}
		if mask&servicePKey == 0 {
			asked.ServicePKey = mad.DefaultPKey
		}
	}
	if !trusted {
		asked.ServiceKey = [16]byte{}
	}
	asked.Encode(r.Data)
	return mad.StatusOK
}

// findServices finds the services of the requester's partitions.
func (r *saRequest) findServices(q *query) mad.Status {
	q.compare = slices.DeleteFunc(q.compare, func(f mad.Field) bool { return f.Mask() == serviceLease })
	now := r.SA.subnet.Now()
	for i := range r.SA.Services {
		s := &r.SA.Services[i]
		before := len(q.records)
		if !s.expired(now) && r.SA.subnet.HasPKey(r.From, s.ServicePKey) {
			q.add(s)
		}
		if len(q.records) > before && !q.trusted {
			clear(mad.AttrServiceRecord.Field("service_key").Bytes(q.records[before:]))
		}
	}
	return mad.StatusOK
}
