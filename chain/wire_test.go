package chain_test

import (
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
)

// The address of a signer has one form: in capitals it would be another participant, with the same key.
func TestSignersAreWrittenInOneForm(t *testing.T) {
	e, err := wire.NewEncoding()
	if err != nil {
		t.Fatal(err)
	}
	self := account.Address(make([]byte, 20))
	for _, m := range []func(id string) sdk.Msg{
		func(id string) sdk.Msg { return &registrypb.MsgRegister{Sender: id} },
		func(id string) sdk.Msg { return &rewardpb.MsgClaimRevenue{Sender: id} },
		func(id string) sdk.Msg { return &banktypes.MsgSend{FromAddress: id} },
	} {
		if s, _, err := e.Codec.GetMsgV1Signers(m(self)); err != nil || len(s) != 1 {
			t.Errorf("%T: %v", m(self), err)
		}
		if _, _, err := e.Codec.GetMsgV1Signers(m(strings.ToUpper(self))); err == nil {
			t.Errorf("%T in capitals is signed", m(self))
		}
	}
}
