package ledger

import (
	"slices"
	"testing"

	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/wire"
)

// A transaction that sends coins says to whom, how many, for which fee and with which memo.
func TestDescribeTransfers(t *testing.T) {
	e, err := wire.Shared()
	if err != nil {
		t.Fatal(err)
	}
	from, to, third := sdk.AccAddress("from________________").String(), sdk.AccAddress("to__________________").String(),
		sdk.AccAddress("third_______________").String()
	coins := func(n int64) sdk.Coins { return sdk.Coins{{Denom: adapter.Denom, Amount: sdkmath.NewInt(n)}} }
	huge, _ := sdkmath.NewIntFromString("100000000000000000000")
	b := e.Tx.NewTxBuilder()
	if err := b.SetMsgs(&banktypes.MsgSend{FromAddress: from, ToAddress: to, Amount: coins(2_500_000)},
		&banktypes.MsgMultiSend{Inputs: []banktypes.Input{{Address: from, Coins: coins(5)}},
			Outputs: []banktypes.Output{{Address: to, Coins: coins(2)}, {Address: third, Coins: coins(3)}}},
		&banktypes.MsgSend{FromAddress: from, ToAddress: to,
			Amount: sdk.Coins{{Denom: adapter.Denom, Amount: huge}}}); err != nil {
		t.Fatal(err)
	}
	b.SetMemo("for the winter")
	b.SetFeeAmount(coins(20))
	raw, err := e.Tx.TxEncoder()(b.GetTx())
	if err != nil {
		t.Fatal(err)
	}
	got, ok := describe(raw)
	want := []Transfer{{from, to, 2_500_000}, {from, to, 2}, {from, third, 3}, {from, to, 0}}
	if !ok || got.Fee != 20 || got.Memo != "for the winter" || !slices.Equal(got.Transfers, want) {
		t.Errorf("%+v", got)
	}
}
