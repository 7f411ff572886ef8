package federated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/federated/forecast"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
)

// plan says what a job will take, and starts nothing.
func (f serving) plan(ctx context.Context, c *terminal.Console, path string) (err error) {
	base := memory.Peak()
	j, err := job.ReadFederated(path, f.set...)
	if err == nil {
		err = errors.Join(j.Confine(""), j.CheckFiles())
	}
	if err != nil {
		return err
	}
	b, err := prepare.New(j)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	p, err := forecast.Of(ctx, b, base, c.Say)
	if err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(p, p.Name))
	}
	return printPlan(p)
}

// printPlan is the plan for people.
func printPlan(p *forecast.Plan) error {
	fmt.Printf("%s: %d rounds of %d steps, %d owners, at least %d in a sum; an update of %d weights, %s\n", p.Name,
		p.Rounds, p.Steps, p.Owners, p.MinCohort, p.Weights, p.Updates)
	took := time.Duration(p.Seconds * float64(time.Second)).Round(100 * time.Millisecond)
	fmt.Printf("time     %s of work on machines like this one, without links; a step takes %.3g s\n", took,
		p.StepSeconds)
	fmt.Printf("privacy  %s\n         %s\n\n", ofOwners(p.Epsilon, p.Delta), ofExamples(p.Example))
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PARTY\tMEMORY MB\tDISK MB\tMB SENT A ROUND\tMB RECEIVED\tSECONDS A ROUND")
	row := func(name string, x forecast.Party) {
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.3f\t%.3f\t%.3g\n", name, x.Memory/1e6, float64(x.Disk)/1e6, float64(x.Sent)/1e6,
			float64(x.Received)/1e6, x.Seconds)
	}
	row("each owner", p.Owner)
	row("coordinator", p.Coordinator)
	fmt.Fprintln(w, "\nUPDATES\tMB SENT\tOWNER SECONDS\tCOORDINATOR SECONDS\tPROTECTS\tLEAVES OPEN")
	for _, r := range p.Ways {
		name := r.Way
		if name == p.Updates {
			name += " (this job)"
		}
		fmt.Fprintf(w, "%s\t%.3f\t%.3g\t%.3g\t%s\t%s\n", name, float64(r.Sent)/1e6, r.Owner, r.Server, r.Protects, r.Leaves)
	}
	for _, o := range p.Others {
		fmt.Fprintf(w, "%s\t-\t-\t-\t-\t%s\n", o.Way, o.Does)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range p.Notes {
		fmt.Println("note:", n)
	}
	return nil
}
