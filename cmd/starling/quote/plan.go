// Package quote shows what a job will take: its plan, and what a network would charge for it and why it would wait
// there. The figures are of node/plan.
package quote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"text/tabwriter"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/prepare/storage"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/protocol/coin"
)

// Plan says what a job will take, and starts nothing.
// flags are those with which the job is begun.
func Plan(ctx context.Context, c *terminal.Console, j *job.Job, path, network, flags string, o torch.Options) error {
	p, err := plan.PlanJob(ctx, j, network)
	if err != nil {
		return cause.Train(err)
	}
	executor := "the built-in engine"
	if j.Executor == spec.Torch && network == "" {
		v, err := torch.Check(ctx, o)
		if err != nil {
			return err
		}
		executor = fmt.Sprintf("PyTorch %s on %s, a process of its own for each worker", v.Torch, v.Device)
	} else if j.Executor == spec.Torch {
		executor = "PyTorch at workers that have it, the built-in engine at others"
	}
	if c.Form.Machine() {
		return errors.Join(c.Form.Print(os.Stdout, terminal.One(p, p.ID)), Placed(p.Quote), Fits(j, path, flags, p))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(what, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", what, fmt.Sprintf(format, args...)) }
	row("plan", "%s (%s), %s parameters", p.ID, p.Name, terminal.Number(float64(p.Parameters)))
	more := ""
	if p.Flops == math.MaxUint64 {
		more = "more than "
	}
	row("training", "%d steps in %d rounds on %d workers, %s tokens, %s%s operations", p.Steps, p.Rounds, p.Workers,
		terminal.Number(float64(p.Tokens)), more, terminal.Number(float64(p.Flops)))
	row("executor", "%s", executor)
	row("cost", "about %s, at most %s of a budget of %s; what is not earned comes back", p.Coin.Text(p.Expected),
		p.Coin.Text(p.Most), p.Coin.Amount(p.Budget))
	row("stakes", "%s of a worker, %s of a verifier; a faked unit is expected to gain %s", p.Coin.Text(p.Stakes.Worker),
		p.Coin.Text(p.Stakes.Verifier), gain(p.Coin, p.Stakes.Gain))
	if p.StepTime > 0 {
		row("step", "%s of one worker on this machine, with the built-in engine",
			terminal.Span(time.Duration(p.StepTime*float64(time.Second))))
	}
	if p.Seconds > 0 {
		span := func(seconds float64) string { return terminal.Span(time.Duration(seconds * float64(time.Second))) }
		row("time", "about %s if this machine does everything", span(p.Seconds))
		if w := p.Work; w != nil {
			row("", "%s units, %s audits, %s evaluation, %s hashing and storing, %s waiting for blocks", span(w.Units),
				span(w.Audits), span(w.Evaluation), span(w.Bytes), span(w.Chain))
		}
	}
	row("memory", "%s for each worker%s", terminal.Bytes(p.Memory), Room(p.Placement))
	if at := p.Placement; at != nil {
		row("placement", "%s and %s, all on this machine", terminal.Counted(at.Workers, "worker"),
			terminal.Counted(at.Verifiers, "verifier"))
	}
	row("disk", "%s", diskOf(p))
	row("network", "%s received by each worker in a round, and %s before the first", terminal.Bytes(uint64(p.Received)),
		terminal.Bytes(uint64(p.Begin)))
	for k, st := range p.Stages {
		late := ""
		if st.Late > 0 {
			late = ", late by " + terminal.Counted(st.Late, "step")
		}
		if st.Left > 0 {
			late += fmt.Sprintf(", left out by %d of its parts", st.Left)
		}
		row(fmt.Sprintf("stage %d", k), "%s, %s of weights and moments, %s of memory, sends %s in a step, waits for %.0f "+
			"%% of it"+late, st.Layers, terminal.Bytes(uint64(st.StateBytes)), terminal.Bytes(uint64(st.MemoryBytes)),
			terminal.Bytes(uint64(st.SendBytes)), 100*st.Waits)
	}
	for _, n := range p.Notes {
		row("note", "%s", n)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if p.Quote != nil {
		fmt.Println()
		if err := errors.Join(Print(p.Quote), Placed(p.Quote)); err != nil {
			return err
		}
	}
	if err := Fits(j, path, flags, p); err != nil {
		return err
	}
	fmt.Printf("\nnext: starling train %s%s --plan %s\n", jobfile.Word(path), flags, p.ID)
	return nil
}

// gain is an amount that may be a loss.
func gain(c coin.Coin, grains int64) string {
	if grains < 0 {
		return "-" + c.Text(uint64(-grains))
	}
	return c.Text(uint64(grains))
}

// diskOf says how much of the disk a job takes, and of whom.
func diskOf(p *plan.Plan) string {
	need := terminal.Bytes(uint64(p.Disk))
	switch {
	case p.Placement == nil:
		return need + " for each worker"
	case p.FreeDisk == 0:
		return need + " for all parties together; how much is free is not known"
	case p.Disk == p.FreeDisk:
		return need + " for all parties together: fits, and is all that they may fill; more stays in memory"
	case p.FitsDisk():
		return fmt.Sprintf("%s for all parties together: fits, with %s to spare of %s", need,
			terminal.Bytes(uint64(p.FreeDisk-p.Disk)), terminal.Bytes(uint64(p.FreeDisk)))
	}
	return fmt.Sprintf("%s for all parties together: does not fit, %s more than the %s that they may fill", need,
		terminal.Bytes(uint64(p.Disk-p.FreeDisk)), terminal.Bytes(uint64(p.FreeDisk)))
}

// Fits returns an error if a job takes more memory or disk than this machine has, with the settings with which it fits.
func Fits(j *job.Job, path, flags string, p *plan.Plan) error {
	at := p.Placement
	if at == nil {
		return nil
	}
	free := plan.Room{Memory: math.MaxUint64, Disk: math.MaxInt64}
	if at.Fits != "unknown" {
		free.Memory = at.FreeBytes
	}
	if p.FreeDisk > 0 {
		free.Disk = p.FreeDisk
	}
	if at.Fits != "no" {
		if p.FitsDisk() {
			return nil
		}
		return diskTooSmall(j, path, flags, p.Disk, free)
	}
	return memoryTooSmall(j, path, flags, fmt.Sprintf("all at work take about %s, and %s are free",
		terminal.Bytes(at.MemoryBytes), terminal.Bytes(at.FreeBytes)), free)
}

// MemoryTooSmall is the error about a job that was begun and needs more memory than is free; why says so.
func MemoryTooSmall(j *job.Job, path, flags string, why error) error {
	return memoryTooSmall(j, path, flags, why.Error(), freeHere(j))
}

// memoryTooSmall is the error about a job that needs more memory than is free, with the settings with which it fits.
func memoryTooSmall(j *job.Job, path, flags, why string, free plan.Room) error {
	return terminal.WithExit(fitting(j, path, flags, free, &terminal.Problem{Code: "MEMORY_TOO_SMALL",
		What: "the job does not fit into the memory of this machine", Why: why,
		Fix: "train a smaller model, fewer or shorter sequences of a step, or with fewer workers; or on a network " +
			"(--network)"}), terminal.ExitNoCapacity)
}

// DiskTooSmall is the error about a job that was begun and needs more of the disk than there is for an embedded
// network: that of its plan.
func DiskTooSmall(j *job.Job, path, flags string, short *member.ShortageError) error {
	free := freeHere(j)
	free.Disk = short.Free
	return diskTooSmall(j, path, flags, short.Need, free)
}

// freeHere is what is free on this machine, without bound where that is not known.
func freeHere(j *job.Job) plan.Room {
	free := plan.Room{Memory: math.MaxUint64, Disk: math.MaxInt64}
	if available, _, ok := memory.Available(); ok {
		free.Memory = available
	}
	if disk, ok := storage.Room(j.Output.Dir); ok {
		free.Disk = disk
	}
	return free
}

// diskTooSmall is the error about a job that needs more of the disk than is free, with the settings with which it fits.
func diskTooSmall(j *job.Job, path, flags string, need int64, free plan.Room) error {
	return terminal.WithExit(fitting(j, path, flags, free, &terminal.Problem{Code: "STORE_TOO_SMALL",
		What: "the job does not fit on the disk of this machine",
		Why: fmt.Sprintf("all parties together need %s, and may fill %s, which is %s", terminal.Bytes(uint64(need)),
			terminal.Bytes(uint64(free.Disk)), storage.Words),
		Fix: "make room on the disk, or give an output folder on a larger one with --dir"}), terminal.ExitNoCapacity)
}

// fitting makes the command with which a job fits the fix of its refusal, and adds what the job then takes to the
// reason. A job for which no such settings are known keeps the fix that it has.
func fitting(j *job.Job, path, flags string, free plan.Room, p *terminal.Problem) *terminal.Problem {
	if set, need, ok := plan.Fitting(j, free); ok {
		p.Why += fmt.Sprintf("; with the settings of the fix they take about %s of memory and %s of disk",
			terminal.Bytes(need.Memory), terminal.Bytes(uint64(need.Disk)))
		p.Fix = "starling train " + jobfile.Word(path) + flags + jobfile.SetFlags(set)
	}
	return p
}

// Room says whether the memory of a machine is enough for all who work on it.
func Room(at *api.Placement) string {
	if at == nil {
		return ""
	}
	needed, free := terminal.Bytes(at.MemoryBytes), terminal.Bytes(at.FreeBytes)
	switch at.Fits {
	case "yes":
		return fmt.Sprintf(", %s when all are at work: fits, with %s to spare of %s", needed,
			terminal.Bytes(at.FreeBytes-at.MemoryBytes), free)
	case "no":
		return fmt.Sprintf(", %s when all are at work: does not fit, %s more than the %s that are free", needed,
			terminal.Bytes(at.MemoryBytes-at.FreeBytes), free)
	}
	return fmt.Sprintf(", %s when all are at work; how much is free is not known", needed)
}
