package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/node/card"
	"github.com/starling-network/starling/node/tracking"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
)

// Summary is summary.json: the totals of a run. Amounts are in uzen; budget = paid + fee + refunded.
type Summary struct {
	Job           string        `json:"job"`
	Name          string        `json:"name"`
	Rounds        int           `json:"rounds"`
	Workers       int           `json:"workers"`
	Steps         int           `json:"steps"`
	Tokens        uint64        `json:"tokens"`
	FirstEvalLoss float64       `json:"first_eval_loss"`
	FinalEvalLoss float64       `json:"final_eval_loss"`
	Diverged      string        `json:"diverged,omitempty"` // why the model is worth nothing: its loss rose, or is no number
	Audits        AuditCounts   `json:"audits"`
	Disputes      []DisputeLine `json:"disputes"` // but for those about planted faults
	Plants        PlantCounts   `json:"planted_faults"`
	PaidUzen      uint64        `json:"paid_uzen"`
	FeeUzen       uint64        `json:"fee_uzen"`
	RefundedUzen  uint64        `json:"refunded_uzen"`
	BudgetUzen    uint64        `json:"budget_uzen"`
	SlashedUzen   uint64        `json:"slashed_uzen"`
	StateRoot     canon.Digest  `json:"state_root"`
	Seconds       float64       `json:"seconds"` // of rounds, over all runs of the process
	BytesUp       uint64        `json:"bytes_up"`
	BytesDown     uint64        `json:"bytes_down"`
}

// AuditCounts counts audits: drawn, answered right, answered by a dispute.
type AuditCounts struct {
	Drawn  int `json:"drawn"`
	Passed int `json:"passed"`
	Failed int `json:"failed"`
}

// PlantCounts counts the faults that workers planted, to find out whether verifiers look: shown by their workers, of these found by a
// verifier, and passed by one, who was slashed. Nobody looked at the others.
type PlantCounts struct {
	Shown  int `json:"shown"`
	Caught int `json:"caught"`
	Passed int `json:"passed"`
}

// DisputeLine is one dispute of a summary.
type DisputeLine struct {
	Worker     string  `json:"worker"`
	Challenger string  `json:"challenger"`
	Round      uint32  `json:"round"` // from 1
	Unit       uint32  `json:"unit"`
	Verdict    string  `json:"verdict"` // worker_lied or false_challenge
	Reason     string  `json:"reason"`
	Moves      uint32  `json:"moves"`
	HashBytes  uint64  `json:"hash_bytes"`
	Leaf       string  `json:"leaf"`
	LeafBytes  uint64  `json:"leaf_bytes"`
	LeafMS     float64 `json:"leaf_ms"` // of the referee of this process's validator; 0 if it was not there
}

// books is what the chain says about a finished run.
type books struct {
	escrow   market.Escrow
	receipts []reward.Receipt
	disputes []dispute.Game
	state    run.State
}

func readBooks(ctx context.Context, chain *client.Client, id string) (k books, err error) {
	if k.escrow, err = chain.Escrow(ctx, id); err != nil {
		return k, err
	}
	if k.receipts, err = chain.Receipts(ctx, id); err != nil {
		return k, err
	}
	if k.disputes, err = chain.Disputes(ctx, id); err != nil {
		return k, err
	}
	k.state, err = chain.Run(ctx, id)
	return k, err
}

// ending is all that is known about a run that is over.
type ending struct {
	*Blueprint
	books
	lines    []Line
	metrics  []Metric
	root     canon.Digest               // of the last checkpoint
	took     func(dispute.Game) float64 // milliseconds of the referee for the leaf of a dispute, 0 if not known
	diverged string                     // why the run was given up, if it diverged
}

// conclude writes what a run leaves behind.
func (c *collector) conclude(ctx context.Context) (*Summary, error) {
	c.show("closing the books")
	k, err := readBooks(ctx, c.chain, c.b.JobID())
	if err != nil {
		return nil, err
	}
	metrics, err := c.out.readMetrics()
	if err != nil {
		return nil, err
	}
	if c.last == nil { // restarted after the last round was collected
		if c.last, err = engine.LoadCheckpoint(ctx, k.state.Base, c.store.Get); err != nil {
			return nil, err
		}
	}
	e := ending{c.b, k, c.lines, metrics, c.last.Root(), c.took, c.diverged}
	s := e.summary()
	if err := errors.Join(writeReceipts(c.out, k.receipts), writeDisputes(c.out, k.disputes, c.took), c.writeLinks(ctx)); err != nil {
		return nil, err
	}
	leaves, err := c.b.leaves()
	if err != nil {
		return nil, err
	}
	files, err := exportModel(c.b, c.last, leaves)
	if err != nil {
		return nil, err
	}
	for name, text := range files {
		if err := c.out.write(name, text); err != nil {
			return nil, err
		}
	}
	if err := c.out.writeReport(e.report(s)); err != nil {
		return nil, err
	}
	var state bytes.Buffer
	if err := tracking.TrainerState(&state, tracked(metrics)); err != nil {
		return nil, err
	}
	if err := errors.Join(c.out.write(fileTrainerState, state.Bytes()), c.prune(ctx, 1), c.out.writeJSON(fileSummary, s)); err != nil {
		return s, err
	}
	return s, c.out.writeCard()
}

// writeCard describes the model by the other files of the folder.
func (o *OutDir) writeCard() error {
	about, err := card.Read(os.DirFS(o.Path))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := about.Write(&text); err != nil {
		return err
	}
	return o.write(card.File, text.Bytes())
}

// abandon writes what a run that ended with a *train.DivergedError leaves behind: the model and the receipts of the rounds
// before. It returns the error with which the run ended.
func (c *collector) abandon(ctx context.Context, err error) error {
	why := (*train.DivergedError)(nil)
	if !errors.As(err, &why) || c.last == nil || c.diverged != "" { // concluded, in the last case
		return err
	}
	c.diverged = why.Error()
	for round := uint32(len(c.lines)) + 1; round <= why.Round; round++ {
		if failure := c.collect(ctx, round, why.Round); failure != nil {
			return errors.Join(err, failure)
		}
	}
	_, failure := c.conclude(ctx)
	return errors.Join(err, failure)
}

func (e ending) summary() *Summary {
	spec := e.Spec
	s := &Summary{
		Job: e.JobID(), Name: e.Job.Name, Rounds: len(e.lines), Workers: int(spec.Units), Steps: len(e.lines) * int(spec.Steps),
		PaidUzen: e.escrow.Paid, FeeUzen: e.escrow.Fee, RefundedUzen: e.escrow.Refunded, BudgetUzen: e.escrow.Budget,
		StateRoot: e.root, Disputes: []DisputeLine{},
	}
	s.Tokens = e.tokens(s.Steps)
	s.FirstEvalLoss, s.FinalEvalLoss = evalLosses(e.metrics)
	if s.Diverged = e.diverged; s.Diverged == "" {
		s.Diverged = rise(e.metrics)
	}
	for _, m := range e.metrics {
		if m.Kind == "round" {
			s.Seconds += m.Seconds
			s.BytesUp += m.BytesUp
			s.BytesDown += m.BytesDown
		}
	}
	for _, r := range e.receipts {
		switch r.Kind {
		case reward.Slash:
			s.SlashedUzen += r.Amount
		case reward.Audit:
			s.Audits.Drawn++
			switch {
			case passed(r):
				s.Audits.Passed++
			case r.Reason == reward.FaultFound || r.Reason == reward.NothingShown || r.Reason == reward.FalseChallenge:
				s.Audits.Failed++
			}
		}
	}
	s.Plants = e.plants()
	for _, g := range e.disputes {
		if g.Planted {
			continue
		}
		s.Disputes = append(s.Disputes, disputeLine(g, e.took(g)))
	}
	return s
}

// plants counts the planted faults: several may challenge one.
func (k books) plants() (n PlantCounts) {
	for _, m := range k.state.Members {
		n.Shown += int(m.Planted)
	}
	caught := map[role.Work]bool{}
	for _, g := range k.disputes {
		if g.Planted {
			caught[role.Work{Round: g.Config.Round, Unit: g.Config.Unit, Attempt: g.Config.Attempt}] = true
		}
	}
	n.Caught = len(caught)
	for _, r := range k.receipts {
		if r.Kind == reward.Slash && r.Reason == reward.PlantPassed {
			n.Passed++
		}
	}
	return n
}

// rise says that the loss at the end is far above that at the start: half as much again, and a nat. It is the eval loss, or
// the loss in training when nothing is held out; "" if it is not.
func rise(metrics []Metric) string {
	what := "eval loss"
	first, last := evalLosses(metrics)
	if first == 0 && last == 0 {
		what = "loss"
		for _, m := range metrics {
			if m.Kind == "round" && m.Round > 0 {
				if last = m.Loss; first == 0 {
					first = m.Loss
				}
			}
		}
	}
	if last < 1.5*first || last < first+1 {
		return ""
	}
	return fmt.Sprintf("the %s rose from %.3f to %.3f", what, first, last)
}

// evalLosses returns the first and the last measured eval loss; 0 when nothing is held out.
func evalLosses(metrics []Metric) (first, last float64) {
	seen := false
	for _, m := range metrics {
		if m.EvalLoss != nil {
			if !seen {
				first, seen = *m.EvalLoss, true
			}
			last = *m.EvalLoss
		}
	}
	return first, last
}

func disputeLine(g dispute.Game, took float64) DisputeLine {
	l := DisputeLine{Worker: g.Config.Asserter, Challenger: g.Config.Challenger, Round: g.Config.Round + 1, Unit: g.Config.Unit, Verdict: "open", LeafMS: took}
	if g.Stage == dispute.Over { // unless the next lines know better
		l.Verdict, l.Moves, l.HashBytes = "moot", g.Moves[0]+g.Moves[1], g.HashBytes
	}
	if g.Planted {
		l.Verdict = "planted"
	}
	if v := g.Verdict; v != nil {
		l.Verdict = "false_challenge"
		if v.AsserterLies {
			l.Verdict = "worker_lied"
		}
		l.Reason, l.Moves, l.HashBytes, l.Leaf, l.LeafBytes = v.Reason, v.Moves, v.HashBytes, v.Leaf, v.LeafBytes
	}
	return l
}

// receiptLine is one line of receipts.jsonl. Rounds are counted from 1, as in the lineage.
type receiptLine struct {
	reward.Receipt
	Round       uint32 `json:"round"`
	Explanation string `json:"explanation"`
}

func writeReceipts(out *OutDir, receipts []reward.Receipt) error {
	lines := make([]receiptLine, len(receipts))
	for i, r := range receipts {
		lines[i] = receiptLine{r, r.Round + 1, reward.Explain(r)}
	}
	return writeLines(out, fileReceipts, lines)
}

// dropCheckpoint deletes the blobs of a checkpoint, but for those that a kept one shares.
func dropCheckpoint(ctx context.Context, store blob.Store, drop run.Checkpoint, keep []run.Checkpoint) error {
	shards := func(c run.Checkpoint) []blob.CID {
		id, err := blob.Parse(c.CID)
		if err != nil {
			return nil
		}
		list, _ := checkpoint.Blobs(ctx, store.Get, id) // none if it is not here
		return list
	}
	var kept []blob.CID
	for _, c := range keep {
		kept = append(kept, shards(c)...)
	}
	for _, id := range shards(drop) {
		if slices.Contains(kept, id) {
			continue
		}
		if err := store.Delete(ctx, id); err != nil {
			return fmt.Errorf("node: drop checkpoint %d: %w", drop.Round, err)
		}
	}
	return nil
}
