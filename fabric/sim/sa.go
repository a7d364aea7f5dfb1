package sim

import "fabsh/mad"

func (r *request) admin(m []byte) ([]byte, mad.Status, verdict) {
	return nil, statusUnsupportedMethodAttribute, single
}
