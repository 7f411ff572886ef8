package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/experts"
	"github.com/starling-network/starling/node/rundir"
)

// trainExperts trains each expert of a job file by a run of its own.
func (f flags) trainExperts(ctx context.Context, c *terminal.Console, path string, jobs []*job.Job,
	device *shared.Device) error {
	if f.plan != "" || f.metrics != "" {
		return terminal.WithExit(&terminal.Problem{
			Code: "USAGE", What: "--plan or --metrics is given for a file of several jobs",
			Why: "a plan is that of one job, and an address serves the metrics of one",
			Fix: "train the experts one by one, such as with --set expert=" + jobs[0].Expert,
		}, terminal.ExitUsage)
	}
	progress := newProgress(c)
	var runs []consumer.Options
	for _, j := range jobs {
		opt := f.options(j, device, progress)
		opt.Say = func(text string) { progress.Say(time.Now(), j.Expert+": "+text) }
		if f.network != "" {
			opt.Web = "" // of all at once: starling web shows them
			opt.Progress = func(consumer.Progress) {}
		}
		if !f.resume || !errors.Is(rundir.Probe(opt.Dir), rundir.ErrFinished) {
			var err error
			if opt.Resume, err = f.agree(opt.Dir); err != nil {
				return err
			}
		}
		runs = append(runs, opt)
	}
	all, err := experts.Train(ctx, runs)
	progress.Done()
	if err != nil {
		return f.failed(ctx, path, jobs[0], err)
	}
	dir := filepath.Dir(jobs[0].Output.Dir)
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(struct {
			Dir     string            `json:"dir"`
			Experts []experts.Trained `json:"experts"`
		}{dir, all}, dir))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, t := range all {
		fmt.Fprintf(w, "%s\teval loss %s -> %s\tcost %s\tslashed %s ZEN\t%s\n", t.Name,
			terminal.Loss(t.Summary.FirstEvalLoss), terminal.Loss(t.Summary.FinalEvalLoss),
			t.Summary.Coin.Text(t.Summary.PaidUzen+t.Summary.FeeUzen), terminal.Zen(t.Summary.SlashedUzen), t.Path)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("\nnext: starling job verify %s\n      starling model generate %s --prompt \"The\" --tokens 100\n"+
		"      starling model serve %s\n      starling web %s\n", dir, dir, dir, dir)
	return nil
}
