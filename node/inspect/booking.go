package inspect

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
)

// Booking is an amount that an account received, or that was taken from its stake.
type Booking struct {
	Time        time.Time // of the block; zero: the validator does not keep it
	Uzen        int64     // negative: taken; in grains of Coin
	Coin        coin.Coin // zero: ZEN
	Job         string    // or epoch/NUMBER, or model/JOB
	Kind        reward.Kind
	Height      int64
	Transaction string // that issued the receipt; "": the rules of the block did
	Why         string
	Value, Unit string // worth of the amount in a unit of the owner, as package valued sets it; "": none
}

// Bookings are the amounts of an account on a network, the oldest first.
func Bookings(ctx context.Context, network, account string) ([]Booking, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	found, err := receiptsOf(ctx, c, account)
	if err != nil {
		return nil, err
	}
	return booked(found, func(height int64) (time.Time, map[ledger.ReceiptID]string, error) {
		at, by, err := c.Ledger.Issued(ctx, height)
		if errors.Is(err, client.ErrNotFound) && ctx.Err() == nil {
			err = nil
		}
		return at, by, err
	})
}

// booked makes bookings of receipts; issued is asked once for each block.
func booked(found []rundir.Explanation,
	issued func(height int64) (time.Time, map[ledger.ReceiptID]string, error)) (list []Booking, err error) {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b rundir.Explanation) int { return cmp.Compare(a.Height, b.Height) })
	var at time.Time
	var by map[ledger.ReceiptID]string
	asked := int64(-1)
	for _, e := range found {
		if e.Amount == 0 || e.Kind == reward.Deposit || e.Kind == reward.Refund { // the last two are the account's own coins
			continue
		}
		if e.Height != asked {
			if at, by, err = issued(e.Height); err != nil {
				return nil, err
			}
			asked = e.Height
		}
		b := Booking{Time: at.UTC(), Uzen: int64(e.Amount), Coin: e.Coin, Job: e.Job, Kind: e.Kind, Height: e.Height,
			Transaction: by[ledger.ReceiptID{Job: e.Job, Seq: e.Seq}], Why: e.Why}
		if e.Kind.Lost() {
			b.Uzen = -b.Uzen
		}
		list = append(list, b)
	}
	return list, nil
}

// text is a cell that a spreadsheet takes for no formula (OWASP, CSV injection): jobs and reasons have words of others.
func text(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

// WriteCSV writes a line of names and one of each booking, as spreadsheets read them (RFC 4180), with the coin of
// each amount. With value each has its worth and the unit of it.
func WriteCSV(w io.Writer, list []Booking, value bool) error {
	out := csv.NewWriter(w)
	// Error tells
	names := []string{"time", "amount", "coin", "job", "kind", "height", "transaction", "reason"}
	if value {
		names = append(names, "value", "unit")
	}
	_ = out.Write(names)
	for _, b := range list {
		at, sign, uzen := "", "", b.Uzen
		if !b.Time.IsZero() {
			at = b.Time.Format(time.RFC3339)
		}
		if uzen < 0 {
			sign, uzen = "-", -uzen
		}
		row := []string{at, sign + b.Coin.Amount(uint64(uzen)), b.Coin.Name(), text(b.Job), string(b.Kind),
			strconv.FormatInt(b.Height, 10), b.Transaction, text(b.Why)}
		if value {
			row = append(row, b.Value, text(b.Unit))
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}
