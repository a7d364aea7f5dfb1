package agent

import (
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// maxKept is the largest number of subscriptions, and of services, that requesters can
// store.
const maxKept = 1 << 16

// changeSubscription begins or ends a subscription of the requester (IBA 13.4.8.3,
// 15.4.12; opensm, osm_sa_informinfo.c, infr_rcv_process_set_method). The answer
// holds the request's InformInfo.
func (r *saRequest) changeSubscription(_ uint64, trusted bool) mad.Status {
	var info mad.InformInfo
	info.Decode(r.Data)
	return r.subscribe(r.From.EndPort(), &info, trusted)
}

// changeSubscriptionRecord begins or ends the subscription in an InformRecord, which
// version 1 of the class has (Shanley, InfiniBand Network Architecture, table 33-5). Only
// trusted requesters may change that of another port.
func (r *saRequest) changeSubscriptionRecord(_ uint64, trusted bool) mad.Status {
	var rec mad.InformInfoRecord
	rec.Decode(r.Data)
	to := r.From.EndPort()
	if rec.SubscriberGID != to.GID() {
		if to = r.SA.subnet.EndPortByGUID(rec.SubscriberGID.GUID()); to == nil || !trusted {
			return mad.StatusRequestInvalid
		}
	}
	return r.subscribe(to, &rec.InformInfo, trusted)
}

func (r *saRequest) subscribe(to *state.Port, info *mad.InformInfo, trusted bool) mad.Status {
	i := state.Subscription{To: to, Info: *info}
	i.Info.QPN, i.Info.Subscribe = 0, 1
	at := -1
	for j := range r.SA.notices.Subscriptions {
		if r.SA.notices.Subscriptions[j] == i {
			at = j
		}
	}
	security := info.TrapNumber >= 256 && info.TrapNumber <= 259
	switch {
	case info.Subscribe > 1, info.Subscribe == 0 && at < 0,
		info.IsGeneric != 0 && security && !trusted, // for trusted requesters only
		info.GID != mad.GID{} && !r.SA.subnet.HasGID(info.GID):
		return mad.StatusRequestInvalid
	case info.Subscribe == 0:
		r.SA.notices.Subscriptions = append(r.SA.notices.Subscriptions[:at:at], r.SA.notices.Subscriptions[at+1:]...)
	case at < 0 && len(r.SA.notices.Subscriptions) >= maxKept:
		return mad.StatusNoResources
	case at < 0:
		r.SA.notices.Subscriptions = append(r.SA.notices.Subscriptions, i)
	}
	return mad.StatusOK
}

// findSubscriptions adds the subscriptions, without the queue pair, which only
// trusted requesters may see (IBA C15-0.2-1.16).
func (r *saRequest) findSubscriptions(q *query) mad.Status {
	for i := range r.SA.notices.Subscriptions {
		sub := &r.SA.notices.Subscriptions[i]
		q.add(&mad.InformInfoRecord{SubscriberGID: sub.To.GID(), InformInfo: sub.Info})
	}
	return mad.StatusOK
}
