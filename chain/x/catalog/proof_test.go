package catalog

import (
	"bytes"
	"errors"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/internal/prooftest"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/protocol/catalog"
)

// The network stores what a proof shows about a listing and its base model, once, and for a fee that does not depend on
// the proof but for its bytes. It refuses proofs about other files, of other accounts, and with other keys.
func TestProofsOfListings(t *testing.T) {
	a, k, ctx := open(t)
	files := canon.Sum("files")
	for _, parents := range [][]uint64{nil, {1}} {
		if _, err := a.list(ctx, k, catalogpb.MsgList{Parents: parents}); err != nil {
			t.Fatal(err)
		}
	}
	key, prove := prooftest.New(t)
	good, server := prove(files, files, "", 1), messages{k}
	send := func(m catalogpb.MsgProve) error {
		if m.Sender == "" {
			m.Sender = a.consumer
		}
		_, err := server.Prove(ctx, &m)
		return err
	}
	d := proof.KeyDigest(key)
	if err := send(catalogpb.MsgProve{Listing: 2, Parent: 1, Key: d[:], Proof: good}); !errors.Is(err, ErrKey) {
		t.Errorf("a key that is not registered: %v", err)
	}
	r, err := server.RegisterKey(ctx, &catalogpb.MsgRegisterKey{Sender: a.consumer, Key: key})
	if err != nil || canon.Digest(r.Digest) != d {
		t.Fatalf("%x, %v", r.GetDigest(), err)
	}
	_, err = server.RegisterKey(ctx, &catalogpb.MsgRegisterKey{Sender: a.consumer, Key: key})
	if !errors.Is(err, ErrAgain) {
		t.Errorf("the same key: %v", err)
	}
	for _, bad := range [][]byte{nil, good, key[:100], make([]byte, catalog.MaxProofBytes+1)} {
		if _, err := server.RegisterKey(ctx, &catalogpb.MsgRegisterKey{Key: bad}); !errors.Is(err, proof.ErrKey) {
			t.Errorf("%d bytes are a key: %v", len(bad), err)
		}
	}
	forged := bytes.ReplaceAll(good, []byte("layer"), []byte("lazer"))
	other, _ := prooftest.New(t)
	if _, err := server.RegisterKey(ctx, &catalogpb.MsgRegisterKey{Sender: a.consumer, Key: other}); err != nil {
		t.Fatal(err)
	}
	e := proof.KeyDigest(other)
	for name, c := range map[string]struct {
		m    catalogpb.MsgProve
		rule error
	}{
		"another account":     {catalogpb.MsgProve{Sender: "x", Listing: 2, Parent: 1, Key: d[:], Proof: good}, ErrOwner},
		"no parent":           {catalogpb.MsgProve{Listing: 1, Parent: 2, Key: d[:], Proof: good}, catalog.ErrProven},
		"itself":              {catalogpb.MsgProve{Listing: 2, Parent: 2, Key: d[:], Proof: good}, catalog.ErrProven},
		"no listing":          {catalogpb.MsgProve{Listing: 2, Parent: 3, Key: d[:], Proof: good}, ErrNone},
		"another base model":  {catalogpb.MsgProve{Listing: 2, Parent: 1, Proof: prove(d, files, "", 1)}, catalog.ErrProven},
		"another adapter":     {catalogpb.MsgProve{Listing: 2, Parent: 1, Proof: prove(files, d, "", 1)}, catalog.ErrProven},
		"another key":         {catalogpb.MsgProve{Listing: 2, Parent: 1, Key: e[:], Proof: good}, proof.ErrInvalid},
		"a forged proof":      {catalogpb.MsgProve{Listing: 2, Parent: 1, Key: d[:], Proof: forged}, proof.ErrInvalid},
		"no proof":            {catalogpb.MsgProve{Listing: 2, Parent: 1, Key: d[:]}, proof.ErrProof},
		"the digest of a key": {catalogpb.MsgProve{Listing: 2, Parent: 1, Key: d[1:], Proof: good}, ErrKey},
	} {
		if err := send(c.m); !errors.Is(err, c.rule) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var used []uint64
	for tokens := range uint32(3) {
		before := ctx.GasMeter().GasConsumed()
		m := catalogpb.MsgProve{Listing: 2, Parent: 1, Key: d[:], Proof: prove(files, files, "", tokens+1)}
		if err := send(m); err != nil {
			t.Fatal(err)
		}
		used = append(used, ctx.GasMeter().GasConsumed()-before)
	}
	if used[1] > used[2]+10_000 || used[2] > used[1]+10_000 || used[2] < proofGas {
		t.Errorf("proofs cost %d", used)
	}
	if err := send(catalogpb.MsgProve{Listing: 2, Parent: 1, Key: d[:], Proof: prove(files, files, "", 2)}); err != nil {
		t.Errorf("another proof of the same statement: %v", err) // it has other points
	}
	shown, err := Queries{k}.Proofs(ctx, &catalogpb.QueryProofsRequest{Listing: 2})
	if err != nil || len(shown.Proofs) != 4 {
		t.Fatalf("%d proofs, %v", len(shown.GetProofs()), err)
	}
	var p catalog.Proven
	if err := canon.Unmarshal(shown.Proofs[0], &p); err != nil || p.Parent != 1 || p.Layer != "layer" || p.Setup != 1 ||
		p.Key != d {
		t.Errorf("%+v, %v", p, err)
	}
	stored, err := Queries{k}.Key(ctx, &catalogpb.QueryKeyRequest{Digest: d.String()})
	var have catalog.ProofKey
	if err != nil || canon.Unmarshal(stored.Key, &have) != nil || string(have.Key) != string(key) {
		t.Errorf("the stored key is another: %v", err)
	}
}

// A proof that was made for an account is of no other: an account that lists the same files, and copies the proof out
// of the transaction of its maker, shows nothing with it. A proof for no account is recorded as one.
func TestProofsAreOfOneAccount(t *testing.T) {
	a, k, ctx := open(t)
	files, server := canon.Sum("files"), messages{k}
	key, prove := prooftest.New(t)
	if _, err := server.RegisterKey(ctx, &catalogpb.MsgRegisterKey{Sender: a.consumer, Key: key}); err != nil {
		t.Fatal(err)
	}
	d, owner := proof.KeyDigest(key), a.consumer
	made, loose := prove(files, files, owner, 1), prove(files, files, "", 1)
	for i, account := range []string{owner, sdk.AccAddress("copies..............").String()} {
		a.consumer = account
		for _, parents := range [][]uint64{nil, {uint64(2*i + 1)}} {
			if _, err := a.list(ctx, k, catalogpb.MsgList{Parents: parents}); err != nil {
				t.Fatal(err)
			}
		}
		m := catalogpb.MsgProve{Sender: account, Listing: uint64(2*i + 2), Parent: uint64(2*i + 1), Key: d[:], Proof: made}
		if _, err := server.Prove(ctx, &m); errors.Is(err, catalog.ErrProven) != (account != owner) {
			t.Errorf("account %d: %v", i, err)
		}
		m.Proof = loose
		if _, err := server.Prove(ctx, &m); err != nil {
			t.Errorf("a proof for no account: %v", err)
		}
		shown, err := Queries{k}.Proofs(ctx, &catalogpb.QueryProofsRequest{Listing: m.Listing})
		if err != nil {
			t.Fatal(err)
		}
		bound := 0
		for _, data := range shown.Proofs {
			var p catalog.Proven
			if err := canon.Unmarshal(data, &p); err != nil {
				t.Fatal(err)
			}
			if p.Bound {
				bound++
			}
		}
		if bound != 1-i || len(shown.Proofs) != 2-i {
			t.Errorf("account %d: %d of %d proofs name it", i, bound, len(shown.Proofs))
		}
	}
}
