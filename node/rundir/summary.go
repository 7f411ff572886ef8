package rundir

import (
	"bytes"
	"os"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/card"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/web/report"
)

// Summary is summary.json: the totals of a run. Amounts are in uzen; budget = paid + fee + refunded.
type Summary struct {
	Job           string  `json:"job"`
	Name          string  `json:"name"`
	Rounds        int     `json:"rounds"`
	Workers       int     `json:"workers"`
	Steps         int     `json:"steps"`
	Tokens        uint64  `json:"tokens"`
	FirstEvalLoss float64 `json:"first_eval_loss"`
	FinalEvalLoss float64 `json:"final_eval_loss"`
	// by the last evaluation besides the loss; nil: nothing
	FinalMeasured map[string]float64 `json:"final_measured,omitempty"`
	BitsPerByte   float64            `json:"bits_per_byte,omitempty"` // of held-out text at the end; 0: none is held out
	// why the model is worth nothing: its loss rose, or is no number
	Diverged     string        `json:"diverged,omitempty"`
	Audits       AuditCounts   `json:"audits"`
	Disputes     []DisputeLine `json:"disputes"` // but for those about planted faults
	Plants       PlantCounts   `json:"planted_faults"`
	PaidUzen     uint64        `json:"paid_uzen"`
	FeeUzen      uint64        `json:"fee_uzen"`
	RefundedUzen uint64        `json:"refunded_uzen"`
	BudgetUzen   uint64        `json:"budget_uzen"`
	SlashedUzen  uint64        `json:"slashed_uzen"`  // of stakes in ZEN
	Coin         coin.Coin     `json:"coin,omitzero"` // of the budget and what it paid, in grains; absent: ZEN
	StateRoot    canon.Digest  `json:"state_root"`
	Seconds      float64       `json:"seconds"` // of rounds, over all runs of the process
	BytesUp      uint64        `json:"bytes_up"`
	BytesDown    uint64        `json:"bytes_down"`
	// that the process had resident, at most; 0: not known, or a simulation, which is the same on every machine
	PeakMemory uint64 `json:"peak_memory_bytes,omitempty"`
}

// AuditCounts counts audits by how they ended.
type AuditCounts = api.AuditCounts

// PlantCounts counts the faults that workers planted to test verifiers: those that their workers revealed, those of
// them that a verifier found, and those that a verifier passed, which was slashed. The others were audited by no
// verifier.
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

// WriteCard describes the model by the other files of the folder.
func (o *OutDir) WriteCard() error {
	about, err := card.Read(os.DirFS(o.Path))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := about.Write(&text); err != nil {
		return err
	}
	return o.Write(card.File, text.Bytes())
}

func NewDisputeLine(g dispute.Dispute, took float64) DisputeLine {
	l := DisputeLine{Worker: g.Config.Asserter, Challenger: g.Config.Challenger, Round: g.Config.Round + 1,
		Unit: g.Config.Unit, Verdict: "open", LeafMS: took}
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

// ReceiptLine is one line of receipts.jsonl. Rounds are counted from 1, as in the lineage.
type ReceiptLine struct {
	reward.Receipt
	Round       uint32 `json:"round"`
	Explanation string `json:"explanation"`
}

func (o *OutDir) WriteReport(r report.Report) error {
	var page bytes.Buffer
	if err := report.Write(&page, r); err != nil {
		return err
	}
	return o.Write(FileReport, page.Bytes())
}
