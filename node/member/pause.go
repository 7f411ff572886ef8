package member

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/pause"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
)

// turn tells the role that the process is paused or resumed, or that the end of a pause is another, and returns what it
// asks for. It knows of a pause before the job is opened with the first block after that.
func (p *Process) turn(s pause.State) []role.Action {
	now := role.Pause{Until: p.heightAt(s.Until)}
	same := s.Paused == p.told.Paused && s.Until.Equal(p.told.Until)
	switch known := p.paused.Until > 0 || now.Until == 0; {
	case p.party == nil || same && known:
		return nil
	case s.Paused:
		p.told, p.paused = s, now
		return p.tell(now)
	}
	p.told, p.paused = pause.State{}, role.Pause{}
	return p.tell(role.Resume{})
}

// heightAt is the height that the chain has at a time, at the rate of the blocks so far; 0: that is not known.
func (p *Process) heightAt(at time.Time) int64 {
	if at.IsZero() || p.Instruments == nil {
		return 0
	}
	height, interval := p.Instruments.Pace()
	if interval <= 0 {
		return 0
	}
	return height + max(0, int64(time.Until(at)/interval))
}

// giveBack gives memory back to the system, of this process and of its children, while nothing is computed.
func (p *Process) giveBack() {
	to := p.Holding.Aside
	if files, ok := to.(memory.Aside); ok {
		files.Least = 1
		to = files
	}
	p.engine.Release(to, func() {
		p.closeExecutor()
		task := p.engine.Task()
		for unit := range task.Spec.Units + task.Spec.Apart().Drawing() { // each kind of units has a program
			task.Of(unit).Exec.Drop()
		}
	})
	p.Device.Rest()
	debug.FreeOSMemory()
}

// waits reports whether a paused process does not open the job of a run: it owes no answers there.
func (p *Process) waits(s run.State) bool { return p.Pause.Paused() && !s.Liable(p.ID) }

// staysOut leaves a run whose job is not opened before a pause is over, and reports whether that is done. The last
// member of its role stays.
func (p *Process) staysOut(ctx context.Context, s run.State) (left bool) {
	if !s.MayLeave(p.ID) {
		return s.Removed(p.ID)
	}
	if err := p.Chain.Work.Leave(ctx, p.Chain.Job); err != nil {
		p.Log.Warn("cannot leave a run during a pause", "err", err)
	}
	return false
}
