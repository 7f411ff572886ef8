package client_test

import (
	"testing"

	"github.com/starling-network/starling/chain/app/queries"
	"github.com/starling-network/starling/chain/app/room"
	"github.com/starling-network/starling/client/gas"
	"github.com/starling-network/starling/client/transaction"
)

// The price that a validator states comes from a stranger: no price, or one that does not parse, gives no fee. If the
// chain asks for more than the validator, the transaction pays the price of the chain.
func TestFeeOf(t *testing.T) {
	for words, c := range map[string]struct {
		million uint64
		want    string
	}{"0.01uzen": {0, "20uzen"}, "0.0001uzen": {10_000, "20uzen"}, "1uzen": {10_000, "2000uzen"},
		"0.0099uzen": {0, "20uzen"}, "": {0, ""}, "much": {10_000, ""}} {
		price, err := transaction.GasPrice(words, c.million)
		var f transaction.Fee
		if err == nil {
			f, err = transaction.FeeFor(price, 2000)
		}
		if (err == nil) != (c.want != "") || f.Amount.String() != c.want {
			t.Errorf("%q: %s (%v), want %q", words, f.Amount, err, c.want)
		}
	}
	if !transaction.Busy(transaction.Refusal(queries.ErrBusy.Codespace(), queries.ErrBusy.ABCICode(), "")) {
		t.Errorf("a busy validator says %s %d", queries.ErrBusy.Codespace(), queries.ErrBusy.ABCICode())
	}
	if gas.Most != room.MaxGas {
		t.Errorf("clients declare at most %d units of gas, chains take %d", gas.Most, room.MaxGas)
	}
}
