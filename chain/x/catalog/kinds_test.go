package catalog

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/internal/prooftest"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/verifier"
	"github.com/starling-network/starling/protocol/catalog"
)

// The network verifies proofs of answers and of sums about a listed model, which have no parent, at the fee of others
// and that of each further commitment. It refuses those of other files, of another account, under a key of another
// kind, and with one changed byte.
func TestProofsOfOtherKinds(t *testing.T) {
	a, k, ctx := open(t)
	files, server := canon.Sum("files"), messages{k}
	for _, parents := range [][]uint64{nil, {1}} {
		if _, err := a.list(ctx, k, catalogpb.MsgList{Parents: parents}); err != nil {
			t.Fatal(err)
		}
	}
	answers, answer := prooftest.Inference(t)
	sums, sum := prooftest.Aggregation(t)
	register := func(key []byte) []byte {
		r, err := server.RegisterKey(ctx, &catalogpb.MsgRegisterKey{Sender: a.consumer, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return r.Digest
	}
	ofAnswers, ofSums, used := register(answers), register(sums), map[verifier.Kind]uint64{}
	for _, c := range []struct {
		kind       verifier.Kind
		key, other []byte
		prove      func(files canon.Digest, owner string) []byte
	}{{verifier.Inference, ofAnswers, ofSums, answer}, {verifier.Aggregation, ofSums, ofAnswers, sum}} {
		good := c.prove(files, a.consumer)
		for name, bad := range map[string]struct {
			m    catalogpb.MsgProve
			rule error
		}{
			"a parent":     {catalogpb.MsgProve{Listing: 2, Parent: 1, Key: c.key, Proof: good}, catalog.ErrProven},
			"another kind": {catalogpb.MsgProve{Listing: 2, Key: c.other, Proof: good}, proof.ErrInvalid},
			"other files": {catalogpb.MsgProve{Listing: 2, Key: c.key, Proof: c.prove(canon.Sum("x"), "")},
				catalog.ErrProven},
			"another account": {catalogpb.MsgProve{Listing: 2, Key: c.key, Proof: c.prove(files, "x")}, catalog.ErrProven},
			"no listing":      {catalogpb.MsgProve{Listing: 3, Key: c.key, Proof: good}, ErrNone},
			"a stranger":      {catalogpb.MsgProve{Sender: "x", Listing: 2, Key: c.key, Proof: good}, ErrOwner},
		} {
			if bad.m.Sender == "" {
				bad.m.Sender = a.consumer
			}
			if _, err := server.Prove(ctx, &bad.m); !errors.Is(err, bad.rule) {
				t.Errorf("%s, %s: %v", c.kind, name, err)
			}
		}
		for i := range good {
			bad := slices.Clone(good)
			bad[i] ^= 1
			m := &catalogpb.MsgProve{Sender: a.consumer, Listing: 2, Key: c.key, Proof: bad}
			if _, err := server.Prove(ctx, m); err == nil {
				t.Errorf("%s: byte %d of %d may be another", c.kind, i, len(good))
			}
		}
		before := ctx.GasMeter().GasConsumed()
		if _, err := server.Prove(ctx, &catalogpb.MsgProve{Sender: a.consumer, Listing: 2, Key: c.key,
			Proof: good}); err != nil {
			t.Fatal(err)
		}
		if used[c.kind] = ctx.GasMeter().GasConsumed() - before; used[c.kind] < proofGas {
			t.Errorf("%s: a proof costs %d", c.kind, used[c.kind])
		}
	}
	if one, two := used[verifier.Inference], used[verifier.Aggregation]; two < one+commitmentGas {
		t.Errorf("a proof with two commitments costs %d, one with one %d", two, one)
	}
	shown, err := Queries{k}.Proofs(ctx, &catalogpb.QueryProofsRequest{Listing: 2})
	if err != nil || len(shown.Proofs) != 2 {
		t.Fatalf("%d proofs, %v", len(shown.GetProofs()), err)
	}
	var all []catalog.Proven
	for _, data := range shown.Proofs {
		var p catalog.Proven
		if err := canon.Unmarshal(data, &p); err != nil || p.Parent != 0 || !p.Bound || p.Setup != 1 {
			t.Errorf("%+v, %v", p, err)
		}
		want := map[verifier.Kind]int{verifier.Aggregation: 2, verifier.Inference: 1}[p.Kind]
		if n := max(len(p.Commitments), 1); n != want {
			t.Errorf("%d commitments of an %s", n, p.Kind)
		}
		all = append(all, p)
	}
	if n, _ := catalog.Layers(all, 0); n != 0 {
		t.Errorf("%d layers of adapters", n)
	}
}
