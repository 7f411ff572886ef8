package simulate

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/starling-network/starling/node/ending"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/web/report"
)

// Errors of simulations.
var (
	ErrNoParty = errors.New("no such party")
	ErrNoAct   = errors.New("no such way to break the rules")
)

// Names of the files of a simulation.
const (
	fileSimulation = "simulation.json"
	fileRounds     = "rounds.csv"
	fileSweep      = "sweep.csv"
	picture        = ".svg" // extension of the charts
)

// Write leaves a simulation in a folder: simulation.json, report.html, the page that a run leaves behind, its charts as
// .svg, rounds.csv, and metrics.jsonl, receipts.jsonl, disputes.jsonl and lineage.jsonl as of a run, which the folder
// must not hold (Probe). Of a modelled job there is neither a lineage nor a loss. The same simulation gives the same
// bytes.
func (s *Simulation) Write(dir string) error {
	if err := rundir.Probe(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out := &rundir.OutDir{Path: dir}
	e, r := s.ending, s.report()
	var lineage bytes.Buffer
	for _, l := range e.Lines {
		lineage.Write(l.Encode())
	}
	pictures, err := r.Pictures()
	err = errors.Join(
		err, out.Write(rundir.FileJob, e.Job.Source), out.Write(fileRounds, table(e.Metrics, s.Modelled)),
		ending.WriteReceipts(out, e.Receipts), e.WriteDisputes(out), out.WriteReport(r), writePictures(out, pictures),
	)
	if !s.Modelled {
		err = errors.Join(err, out.Write(rundir.FileLineage, lineage.Bytes()),
			rundir.WriteLines(out, rundir.FileMetrics, e.Metrics))
	}
	if err != nil {
		return err
	}
	return out.WriteJSON(fileSimulation, s) // last: the folder of which it is part is whole
}

// report is the report of a run, with the data that only a simulation has. It is made once: a sweep compares all
// variants after each one.
func (s *Simulation) report() report.Report {
	if s.told != nil {
		return *s.told
	}
	r := s.ending.Report(&s.Summary)
	s.complete(&r)
	return r
}

// complete adds to the report of a run what only a simulation knows, and keeps it.
func (s *Simulation) complete(r *report.Report) {
	r.Summary.Utilisation = s.Utilisation
	r.Summary.BrokeRules, r.Summary.HadToLeave = s.BrokeRules()
	if r.Summary.Modelled = s.Modelled; s.Modelled {
		r.Summary.StateRoot = ""
		for i := range r.Rounds {
			r.Rounds[i].Loss = math.NaN()
		}
	}
	for _, p := range s.Parties {
		r.Members = append(r.Members, report.Member{
			Name: p.Name, Act: p.Act, BytesUp: p.BytesUp, BytesDown: p.BytesDown, Worked: p.WorkedSeconds, PaidUzen: p.PaidUzen,
			SlashedUzen: p.SlashedUzen,
			Out:         p.Out, OutSeconds: p.OutSeconds,
		})
	}
	s.told = r
}

func writePictures(o *rundir.OutDir, all []report.Picture) error {
	var err error
	for _, p := range all {
		err = errors.Join(err, o.Write(p.Name+picture, p.SVG))
	}
	return err
}

// BrokeRules is how many parties broke the rules, and how many of them had to leave the run.
func (s *Simulation) BrokeRules() (n, out int) {
	for _, p := range s.Parties {
		if p.Act != "" {
			if n++; p.Out != "" {
				out++
			}
		}
	}
	return n, out
}

// Sweep is simulations of one job under several settings.
type Sweep struct {
	Keys     []string // of the settings
	Variants []SweepVariant
}

// SweepVariant is a simulation of a sweep.
type SweepVariant struct {
	Name     string   // of its folder
	Settings []string // by key
	*Simulation
}

// Write leaves what compares the variants in a folder: report.html, its charts as .svg, and sweep.csv.
func (w Sweep) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	c := report.Comparison{Keys: w.Keys}
	for _, v := range w.Variants {
		c.Name = v.Summary.Name
		c.Variants = append(c.Variants, report.Variant{Name: v.Name, Settings: v.Settings, Report: v.report()})
	}
	var page bytes.Buffer
	if err := c.Write(&page); err != nil {
		return err
	}
	out := &rundir.OutDir{Path: dir}
	pictures, err := c.Pictures()
	return errors.Join(err, out.Write(rundir.FileReport, page.Bytes()), out.Write(fileSweep, w.table()),
		writePictures(out, pictures))
}

// table is the variants as comma-separated values.
func (w Sweep) table() []byte {
	var b bytes.Buffer
	t := csv.NewWriter(&b)
	_ = t.Write(slices.Concat([]string{"variant"}, w.Keys, []string{
		"rounds", "steps", "tokens", "eval_loss", "bits_per_byte", "seconds", "utilisation", "bytes_up",
		"bytes_down", "paid_uzen",
		"fee_uzen", "slashed_uzen",
		"audits_drawn", "audits_failed", "disputes", "broke_rules", "had_to_leave", "halted", "state_root",
	}))
	for _, v := range w.Variants {
		n, out := v.BrokeRules()
		row := slices.Concat([]string{v.Name}, v.Settings)
		var loss, bits, root any = v.FinalEvalLoss, v.BitsPerByte, v.StateRoot
		if v.Modelled {
			loss, bits, root = "", "", ""
		}
		for _, x := range []any{
			v.Rounds, v.Steps, v.Tokens, loss, bits, v.Seconds, v.Utilisation, v.BytesUp, v.BytesDown, v.PaidUzen, v.FeeUzen,
			v.SlashedUzen,
			v.Audits.Drawn, v.Audits.Failed, len(v.Disputes), n, out, v.Halted, root,
		} {
			row = append(row, fmt.Sprint(x))
		}
		_ = t.Write(row)
	}
	t.Flush() // to memory: it does not fail
	return b.Bytes()
}
