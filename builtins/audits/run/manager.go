package run

import (
	"context"
	"fmt"

	"fabsh/builtins/topology"
	"fabsh/fabric/sa"
)

// findSM returns the subnet manager at the moment; nil: none is known.
func findSM(ctx context.Context, env *topology.Env) *sa.SM {
	if env.Engine == nil {
		return nil
	}
	sm, err := env.SA.FindSM(ctx, env.Fabric())
	if err != nil {
		return nil
	}
	return sm
}

// ownAnswers is how far our own requests raise the count of a subnet manager:
// OpenSM's is of the SMPs that it has sent, answers to SMInfo included.
const ownAnswers = 4

// compareSM is what the subnet manager did between two looks at it, in words; empty:
// nothing that is known. A simulated one counts sweeps.
func compareSM(before, now *sa.SM, simulated bool) string {
	if before == nil || now == nil || before.Info == nil || now.Info == nil {
		return ""
	}
	allowed := uint32(ownAnswers)
	if simulated {
		allowed = 0
	}
	switch n := now.Info.ActCount - before.Info.ActCount; {
	case now.Info.GUID != before.Info.GUID:
		return fmt.Sprintf("the subnet manager changed meanwhile: it was %v, it is %v", before, now)
	case n > allowed && n < 1<<31:
		return fmt.Sprintf("the subnet manager was at work meanwhile (its activity count rose by %d): it may have swept", n)
	}
	return ""
}
