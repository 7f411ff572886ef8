package chain_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/app/delegate"
	"github.com/starling-network/starling/chain/wire"
	_ "github.com/starling-network/starling/chain/wire/ibc" // its messages
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
)

// work is every message that the key of a machine may sign; answers those that it may once it was revoked. A message
// is added to a list with a line in docs/adr/0154 about the loss by a stolen key.
var (
	answers = []string{"training.v1.MsgConfess", "training.v1.MsgMove", "training.v1.MsgShowReport",
		"training.v1.MsgShowSlice", "training.v1.MsgUnmask", "training.v1.MsgUnseal"}
	work = []string{"market.v1.MsgOffer", "registry.v1.MsgAnswerMeasure", "registry.v1.MsgAskMeasure",
		"registry.v1.MsgCheckMeasure", "registry.v1.MsgHeartbeat", "registry.v1.MsgOpenMeasure",
		"registry.v1.MsgRegister", "registry.v1.MsgSubmitQuote", "registry.v1.MsgUpdateAddresses", "reward.v1.MsgReport",
		"training.v1.MsgAttest",
		"training.v1.MsgChallenge", "training.v1.MsgCommit", "training.v1.MsgLeave", "training.v1.MsgMissing",
		"training.v1.MsgPass", "training.v1.MsgProve", "training.v1.MsgRefute", "training.v1.MsgReport",
		"training.v1.MsgReturn", "training.v1.MsgSealSlice", "training.v1.MsgSuspect"}
)

// Of all messages of all modules, also of those of the SDK, a machine signs those of the lists, alone or among others.
func TestAMachineSignsWorkAlone(t *testing.T) {
	e, err := wire.NewEncoding()
	if err != nil {
		t.Fatal(err)
	}
	machine := registry.Participant{ID: "m", Machine: registry.Machine{Owner: "o"}}
	revoked := machine
	revoked.Machine.Revoked = 7
	all := e.Registry.ListImplementations(sdk.MsgInterfaceProtoName)
	if len(all) < 100 {
		t.Fatalf("%d messages: where are those of the SDK?", len(all))
	}
	var works, answered []string
	for _, url := range all {
		msg, err := e.Registry.Resolve(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := delegate.Refuses(registry.Participant{ID: "o"}, []sdk.Msg{msg}); err != nil {
			t.Errorf("an owner signs %s: %v", url, err)
		}
		name := strings.TrimPrefix(url, "/starling.")
		if delegate.Refuses(revoked, []sdk.Msg{msg}) == nil {
			answered = append(answered, name)
		}
		switch err := delegate.Refuses(machine, []sdk.Msg{msg}); {
		case err == nil:
			works = append(works, name)
		case !errors.Is(err, fleet.ErrMachine):
			t.Errorf("%s: %v", url, err)
		default:
			heartbeat, _ := e.Registry.Resolve("/starling.registry.v1.MsgHeartbeat")
			if delegate.Refuses(machine, []sdk.Msg{heartbeat, msg}) == nil {
				t.Errorf("%s after a heartbeat", url)
			}
		}
	}
	slices.Sort(works)
	slices.Sort(answered)
	want := slices.Sorted(slices.Values(append(slices.Clone(work), answers...)))
	if !slices.Equal(works, want) || !slices.Equal(answered, answers) {
		t.Errorf("a machine signs %v,\nand a revoked one %v", works, answered)
	}
}
