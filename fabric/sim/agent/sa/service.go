package sa

import (
	"slices"

	"fabsh/mad"
)

// Services, as in OpenSM (opensm osm_sa_service_record.c): a ServiceKey is not
// checked, but is not shown either. A lease does not expire.

const infiniteLease = 1<<32 - 1

var (
	serviceID    = serviceComponent("service_id")
	serviceGID   = serviceComponent("service_gid")
	servicePKey  = serviceComponent("service_p_key")
	serviceLease = serviceComponent("service_lease")
)

func serviceComponent(script string) uint64 { return mad.AttrServiceRecord.Field(script).Mask() }

// changeService adds, changes or deletes a service.
func (r *Request) changeService(mask uint64, trusted bool) mad.Status {
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
	known := slices.IndexFunc(r.SA.Services, func(s mad.ServiceRecord) bool {
		return s.ServiceID == asked.ServiceID && s.ServiceGID == asked.ServiceGID && s.ServicePKey == asked.ServicePKey
	})
	switch {
	case r.Method == mad.MethodDelete && known < 0:
		return mad.StatusNoRecords
	case r.Method == mad.MethodDelete:
		asked = r.SA.Services[known]
		r.SA.Services = slices.Delete(r.SA.Services, known, known+1)
	case mask&(serviceID|serviceGID) != serviceID|serviceGID:
		return mad.StatusRequestInvalid
	case known < 0 && len(r.SA.Services) >= maxKept:
		return mad.StatusNoResources
	default:
		if mask&serviceLease == 0 {
			asked.ServiceLease = infiniteLease
		}
		if known >= 0 {
			r.SA.Services[known] = asked
		} else {
			r.SA.Services = slices.Insert(r.SA.Services, 0, asked)
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
func (r *Request) findServices(q *query) mad.Status {
	q.compare = slices.DeleteFunc(q.compare, func(f mad.Field) bool { return f.Mask() == serviceLease })
	for i := range r.SA.Services {
		s := &r.SA.Services[i]
		before := len(q.records)
		if r.SA.subnet.HasPKey(r.From, s.ServicePKey) {
			q.add(s)
		}
		if len(q.records) > before && !q.trusted {
			clear(mad.AttrServiceRecord.Field("service_key").Bytes(q.records[before:]))
		}
	}
	return mad.StatusOK
}
