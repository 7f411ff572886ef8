package app

import (
	"context"
	"errors"
	"testing"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/app/room"
)

func opened(t *testing.T) *App {
	t.Helper()
	a, err := New(log.NewNopLogger(), dbm.NewMemDB(), Config{ChainID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Queries and simulations above the limit are refused, and so is a transaction too large to be simulated.
func TestFloodOfSimulationsIsRefused(t *testing.T) {
	a := opened(t)
	r, err := a.Query(t.Context(), &abci.RequestQuery{Path: "/app/simulate", Data: make([]byte, SimulatedBytes+1)})
	if err != nil || r.Codespace != sdkerrors.RootCodespace || r.Code != sdkerrors.ErrTxTooLarge.ABCICode() {
		t.Errorf("%d bytes: %+v, %v", SimulatedBytes+1, r, err)
	}
	for range simulations {
		if _, err := a.simulation(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := a.simulation(gone, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("one more simulation: %v", err)
	}
	for range answered {
		if _, err := a.asked.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := a.Query(gone, &abci.RequestQuery{Path: "/app/version"}); err != nil || r.Code == 0 {
		t.Errorf("one more query: %+v, %v", r, err)
	}
}

// payload is a transaction with a number of messages, a gas limit, and a fee or none.
type payload struct {
	sdk.FeeTx
	messages int
	gas      uint64
	fee      sdk.Coins
}

func (p payload) GetMsgs() []sdk.Msg { return make([]sdk.Msg, p.messages) }
func (p payload) GetFee() sdk.Coins  { return p.fee }
func (p payload) GetGas() uint64     { return p.gas }

// Every transaction has a bounded gas limit. A transaction that pays nothing, or is only simulated, has a bounded
// number of messages and bytes.
func TestWhatIsFreeIsBounded(t *testing.T) {
	fee := sdk.NewCoins(sdk.NewInt64Coin("uzen", 1))
	for name, c := range map[string]struct {
		tx       payload
		bytes    int
		simulate bool
		gas      uint64 // its gas limit; 0: it is refused
	}{
		"paid":               {payload{messages: 1000, gas: room.MaxGas, fee: fee}, 8 << 20, false, room.MaxGas},
		"paid for a block":   {payload{messages: 1, gas: room.MaxGas + 1, fee: fee}, 1, false, 0},
		"free":               {payload{messages: FreeMessages, gas: 7}, FreeBytes, false, 7},
		"much gas":           {payload{messages: 1, gas: room.MaxGas + 1}, 1, false, 0},
		"many messages":      {payload{messages: FreeMessages + 1, gas: 7}, 1, false, 0},
		"many bytes":         {payload{messages: 1, gas: 7}, FreeBytes + 1, false, 0},
		"simulated":          {payload{messages: 1, gas: 1 << 40, fee: fee}, 1, true, SimulatedGas},
		"simulated messages": {payload{messages: 60_000, fee: fee}, 1, true, 0},
	} {
		ctx := sdk.Context{}.WithContext(t.Context()).WithBlockHeight(5).WithTxBytes(make([]byte,
			c.bytes)).WithGasMeter(storetypes.NewGasMeter(c.tx.gas))
		got, err := limited{}.AnteHandle(ctx, c.tx, c.simulate,
			func(ctx sdk.Context, _ sdk.Tx, _ bool) (sdk.Context, error) { return ctx, nil })
		switch {
		case c.gas == 0 && err == nil:
			t.Errorf("%s: taken", name)
		case c.gas > 0 && (err != nil || got.GasMeter().Limit() != c.gas):
			t.Errorf("%s: %v", name, err)
		}
	}
}
