package order

import (
	"context"
	"slices"
)

// Prove proves a schedule that is not from Plan, as Plan proves its own.
func Prove(ctx context.Context, in Input, s *Schedule) (Figures, error) {
	if err := in.check(); err != nil {
		return Figures{}, err
	}
	h, err := newHistory(newNet(in.Old.Graph()), &in, s)
	if err != nil {
		return Figures{}, err
	}
	tops := &Schedule{}
	if in.tops(tops); !slices.Equal(tops.Raise, s.Raise) || !slices.Equal(tops.Lower, s.Lower) {
		return Figures{}, &Refusal{Round: -1, Reason: "LinearFDBTop is not raised before, or lowered after, as the entries need it"}
	}
	return h.prove(ctx)
}
