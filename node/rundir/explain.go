package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Explanation is a receipt that a run left behind, with all that can be said about it.
type Explanation struct {
	ReceiptLine
	Role       string         `json:"role,omitempty"` // worker or verifier
	Why        string         `json:"why"`            // the reason, as a sentence without its end
	Arithmetic []string       `json:"arithmetic"`     // how the amount comes about
	Dispute    *DisputeRecord `json:"dispute,omitempty"`
}

// DisputeRecord is one line of disputes.jsonl: a dispute, move by move.
type DisputeRecord struct {
	DisputeLine
	Height int64         `json:"height"` // at which it ended
	Log    []DisputeMove `json:"log"`
}

// DisputeMove is what a party said in a dispute.
type DisputeMove = api.Move

// Errors of Explain.
var (
	ErrNoReceipts = errors.New("the folder holds no receipts")
	ErrNoReceipt  = errors.New("there is no such receipt")
)

// Explain reads what a run left in an output folder and explains its receipts: the one with a number (its seq), those
// of an account, named in full or by the beginning of its address, or all of them if subject is empty.
func Explain(dir, subject string) ([]Explanation, error) {
	o := &OutDir{Path: dir}
	if err := o.ReadRun(); err != nil {
		return nil, err
	}
	lines, err := ReadLines[ReceiptLine](o.File(FileReceipts))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s writes them when its run is over", ErrNoReceipts, dir)
	}
	if err != nil {
		return nil, err
	}
	disputes, err := ReadLines[DisputeRecord](o.File(FileDisputes))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	all := make([]reward.Receipt, len(lines))
	for i, l := range lines {
		all[i] = l.Receipt
		all[i].Round = l.Round - 1
	}
	var found []Explanation
	for i, l := range lines {
		if l.Is(subject) {
			found = append(found, NewExplanation(l, all[i], all, DisputeOf(l, disputes)))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %q; there are %d, numbered from 0", ErrNoReceipt, subject, len(lines))
	}
	return found, nil
}

// NewExplanation explains a receipt among all of its job; the line has it as people count.
func NewExplanation(l ReceiptLine, r reward.Receipt, all []reward.Receipt, d *DisputeRecord) Explanation {
	e := Explanation{ReceiptLine: l, Why: reward.Reason(r), Arithmetic: reward.Arithmetic(r, all), Dispute: d}
	if r.Role == crew.Worker || r.Role == crew.Verifier {
		e.Role = r.Role.String()
	}
	return e
}

// Is reports whether a receipt is one of those that a user means.
func (l ReceiptLine) Is(subject string) bool {
	if seq, err := strconv.ParseUint(subject, 10, 64); err == nil {
		return l.Seq == seq
	}
	return strings.HasPrefix(l.Who, subject)
}

// DisputeOf finds the dispute that a receipt comes from: it ended in the same block, over the same unit.
func DisputeOf(l ReceiptLine, disputes []DisputeRecord) *DisputeRecord {
	if !l.OfDispute() {
		return nil
	}
	for i, d := range disputes {
		if d.Round == l.Round && d.Unit == l.Unit && d.Height == l.Height {
			return &disputes[i]
		}
	}
	return nil
}

// NewDisputeRecord is a dispute in words. names may be nil, where the program of the job is not known.
func NewDisputeRecord(g dispute.Dispute, took float64, names dispute.Names) DisputeRecord {
	d := DisputeRecord{DisputeLine: NewDisputeLine(g, took)}
	for _, r := range g.Log {
		d.Log = append(d.Log, DisputeMove{Height: r.Height, By: r.Party.String(), What: g.Text(r, names)})
		d.Height = r.Height
	}
	return d
}

// WriteLines replaces a file by one line of JSON a record.
func WriteLines[T any](o *OutDir, name string, records []T) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return o.Write(name, b.Bytes())
}

// ReadLines reads a file of one line of JSON a record.
func ReadLines[T any](path string) (records []T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for dec := json.NewDecoder(f); dec.More(); {
		var r T
		if err := dec.Decode(&r); err != nil {
			return nil, fmt.Errorf("%w: %s: record %d: %w", ErrDamaged, path, len(records)+1, err)
		}
		records = append(records, r)
	}
	return records, nil
}
