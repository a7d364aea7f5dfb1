package audits

import (
	"context"
	"fmt"

	"fabsh/builtins/topology"
	"fabsh/fabric/sa"
)

// findSM returns the current subnet manager, nil if unknown.
func findSM(ctx context.Context, env *topology.Env) *sa.SM { return beginFindSM(ctx, env)() }

// beginFindSM is findSM that lets others send meanwhile; wait waits for its result.
func beginFindSM(ctx context.Context, env *topology.Env) (wait func() *sa.SM) {
	if env.Engine == nil {
		return func() *sa.SM { return nil }
	}
	client, f := env.SA, env.Fabric()
	found := make(chan *sa.SM, 1)
	go func() {
		sm, err := client.FindSM(ctx, f)
		if err != nil {
			sm = nil
		}
		found <- sm
	}()
	return func() *sa.SM { return <-found }
}

// ownAnswers is how much the requests of fabsh raise the ActCount of a subnet manager: OpenSM
// counts the SMPs that it has sent, with its answers to SMInfo.
const ownAnswers = 4

// compareSM returns the activity of the subnet manager between two reads, in words; "" if none
// is known. A simulated one counts sweeps.
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
		return fmt.Sprintf("the subnet manager changed during the run: from %v to %v", before, now)
	case n > allowed && n < 1<<31:
		return fmt.Sprintf("the subnet manager was active during the run (ActCount increased by %d): it may have swept", n)
	}
	return ""
}
