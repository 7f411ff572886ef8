package pipeline

import (
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/protocol/handover"
)

// Stalled lists the stages of a replica that could continue and do not, given how far each link is, as its sides have
// signed: what is asked when a unit is late. An honest holder that has shown what it signed is not among them.
func (r *Replica) Stalled(steps uint32, progress func(from, to int) handover.Progress) []uint32 {
	waits := r.Plan.Waits()
	sent := map[[2]int][]order.InStep{}            // the tasks that make the frames of a link, in their order
	number := map[[2]int]map[order.InStep]uint64{} // of such a task: how many frames its link has with its own
	var links []handover.Link
	tasks := make([][]order.InStep, len(r.Plan.Stages))
	for s := range r.Plan.Stages {
		tasks[s] = r.Plan.Continued(s, r.Orders[s], steps)
		for _, t := range tasks[s] {
			for to := range r.Plan.Stages {
				key := [2]int{s, to}
				if len(r.Plan.Frame(s, to, t.Task)) > 0 {
					if len(sent[key]) == 0 {
						links, number[key] = append(links, r.Link(s, to)), map[order.InStep]uint64{}
					}
					sent[key] = append(sent[key], t)
					number[key][t] = uint64(len(sent[key]))
				}
			}
		}
	}
	of := func(l handover.Link) [2]int { return [2]int{int(l.From), int(l.To)} }
	// need is the number of frames of in that the tasks up to the one which makes a frame of out wait for.
	need := func(out handover.Link, frames uint64, in handover.Link) (taken uint64) {
		last := sent[of(out)][frames-1]
		for _, t := range tasks[out.From] {
			for _, at := range waits[out.From][t.Task] {
				if at.Stage == int(in.From) {
					taken = max(taken, number[of(in)][order.InStep{Step: t.Step, Task: at.Task}])
				}
			}
			if t == last {
				break
			}
		}
		return taken
	}
	return handover.Stalled(links, func(l handover.Link) handover.Progress { return progress(int(l.From), int(l.To)) },
		func(l handover.Link) uint64 { return uint64(len(sent[of(l)])) }, need)
}

// Progress is how far a link of the stage is, as it knows: how many frames it has seen signed, and how many were taken.
func (u *Unit) Progress(from, to int) handover.Progress {
	if u.line == nil {
		return handover.Progress{}
	}
	x := u.line.links[[2]int{from, to}]
	if x == nil {
		return handover.Progress{}
	}
	seen := x.Head().Frames
	if to == u.Stage {
		return handover.Progress{Signed: seen, Taken: seen}
	}
	return handover.Progress{Signed: seen, Taken: x.Taken.Head.Frames}
}
