package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/reward"
)

// A table for the books has every amount once, the oldest first, with its block and its transaction.
func TestBookings(t *testing.T) {
	receipt := func(height int64, seq uint64, kind reward.Kind, amount uint64) rundir.Explanation {
		r := reward.Receipt{Job: "job-1", Seq: seq, Height: height, Kind: kind, Amount: amount}
		return rundir.Explanation{ReceiptLine: rundir.ReceiptLine{Receipt: r}, Why: "it was right, \"exactly\""}
	}
	asked := 0
	list, err := booked([]rundir.Explanation{receipt(9, 4, reward.Slash, 2_500_000), receipt(7, 1, reward.Work, 1),
		receipt(7, 2, reward.Audit, 0), receipt(7, 3, reward.Bounty, 12_000_000), receipt(8, 5, reward.Refund, 5),
		receipt(3, 0, reward.Base, 7)},
		func(height int64) (time.Time, map[ledger.ReceiptID]string, error) {
			asked++
			if height == 3 {
				return time.Time{}, nil, nil // it is not kept
			}
			return time.Date(2030, 1, 2, 3, 4, int(height), 5, time.UTC),
				map[ledger.ReceiptID]string{{Job: "job-1", Seq: 4}: "c0ffee"}, nil
		})
	if err != nil || asked != 3 {
		t.Fatalf("%d blocks are asked for, %v", asked, err)
	}
	var text strings.Builder
	if err := WriteCSV(&text, list, false); err != nil {
		t.Fatal(err)
	}
	const want = `time,amount,coin,job,kind,height,transaction,reason
,0.000007,ZEN,job-1,base,3,,"it was right, ""exactly"""
2030-01-02T03:04:07Z,0.000001,ZEN,job-1,work,7,,"it was right, ""exactly"""
2030-01-02T03:04:07Z,12.00,ZEN,job-1,bounty,7,,"it was right, ""exactly"""
2030-01-02T03:04:09Z,-2.50,ZEN,job-1,slash,9,c0ffee,"it was right, ""exactly"""
`
	if text.String() != want {
		t.Errorf("%s", text.String())
	}
}

// A cell that begins as a formula is text to a spreadsheet; a negative amount stays a number.
func TestCellsAreNoFormulas(t *testing.T) {
	var out strings.Builder
	list := []Booking{{Uzen: -1, Job: `=HYPERLINK("http://x")`, Kind: reward.Slash, Height: 3, Why: "@SUM(1)",
		Value: "-0.10", Unit: "+EUR"}}
	if err := WriteCSV(&out, list, true); err != nil {
		t.Fatal(err)
	}
	const want = `,-0.000001,ZEN,"'=HYPERLINK(""http://x"")",slash,3,,'@SUM(1),-0.10,'+EUR` + "\n"
	if _, row, _ := strings.Cut(out.String(), "\n"); row != want {
		t.Errorf("%s", row)
	}
}
