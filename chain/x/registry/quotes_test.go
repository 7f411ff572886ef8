package registry

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/registry/quotes"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/internal/teetest"
	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/attestation/check"
)

// town is a chain at the time of the quotes of tests, which pins their roots, with two workers.
func town(t *testing.T) (*Keeper, registrypb.MsgServer, sdk.Context) {
	t.Helper()
	k, _, ctx := places(t, 4)
	ctx, server := ctx.WithBlockTime(teetest.Now), served(k)
	pin := &registrypb.MsgPinRoots{}
	for _, r := range teetest.Roots() {
		pin.Roots = append(pin.Roots, registrypb.Root{Technology: string(r.Technology), Digest: r.Digest[:]})
	}
	if _, err := server.PinRoots(ctx, pin); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := joins(k, ctx, named(i), 8); err != nil {
			t.Fatal(err)
		}
	}
	return k, server, ctx
}

// about are the report data of a worker for a block.
func about(k *Keeper, ctx sdk.Context, block int64, id, peer string) [64]byte {
	beacon, _ := k.beacon.At(ctx, block)
	return attestation.ReportData(attestation.Nonce(block, beacon), id, peer)
}

func submission(id string, block int64, e attestation.Evidence) *registrypb.MsgSubmitQuote {
	return &registrypb.MsgSubmitQuote{Sender: id, Block: block, Quote: e.Quote, Certificates: e.Certificates,
		Revocations: e.Revocations, TCBInfo: e.TCBInfo, QEIdentity: e.QEIdentity}
}

func refusedBy(t *testing.T, err error, code check.Code) {
	t.Helper()
	if !errors.Is(err, attestation.ErrRefused) || !strings.Contains(err.Error(), "refused: "+string(code)+": ") {
		t.Errorf("%v, wanted a refusal by %s", err, code)
	}
}

// A quote attests the machine of the worker that it is about, until its collateral ends, and no other quote does.
func TestQuotes(t *testing.T) {
	k, server, ctx := town(t)
	id, block := named(0), ctx.BlockHeight()-1
	report := teetest.NewSNP(about(k, ctx, block, id, "peer"))
	good := submission(id, block, report.Evidence())
	r, err := server.SubmitQuote(ctx, good)
	if err != nil || r.Until != teetest.Now.Unix()+attestation.MaxAge {
		t.Fatalf("%+v, %v", r, err)
	}
	list := quotes.Answers{List: k.Quotes}
	attested := func(ctx sdk.Context) bool {
		p, err := k.Get(ctx, id)
		all, wrong := list.Attestations(ctx, &registrypb.QueryAttestationsRequest{})
		if err != nil || wrong != nil || p.Attested() != (len(all.Attestations) == 1) {
			t.Fatalf("%v, %v: %+v and %d attestations", err, wrong, p.Quote, len(all.Attestations))
		}
		return p.Attested()
	}
	if !attested(ctx) {
		t.Error("the worker is not attested")
	}
	for name, c := range map[string]struct {
		m    *registrypb.MsgSubmitQuote
		code check.Code
	}{
		"of another worker": {submission(named(1), block, report.Evidence()), check.ReportData},
		"of another block":  {submission(id, block-1, report.Evidence()), check.ReportData},
		"of this block":     {submission(id, ctx.BlockHeight(), report.Evidence()), check.Nonce},
		"of an old block":   {submission(id, ctx.BlockHeight()-attestation.MaxDelay-1, report.Evidence()), check.Nonce},
		"for another peer": {submission(id, block, teetest.NewSNP(about(k, ctx, block, id, "x")).Evidence()),
			check.ReportData},
		"nothing":             {&registrypb.MsgSubmitQuote{Sender: id, Block: block}, check.Format},
		"with an older list":  {older(k, ctx, id, block), check.Replay},
		"that is too large":   {&registrypb.MsgSubmitQuote{Sender: id, Block: block, Quote: make([]byte, 1<<20)}, check.Size},
		"without certificate": {submission(id, block, attestation.Evidence{Quote: good.Quote}), check.Chain},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := server.SubmitQuote(ctx, c.m)
			refusedBy(t, err, c.code)
		})
	}
	if _, err := server.SubmitQuote(ctx, submission(named(3), block, report.Evidence())); !errors.Is(err,
		attestation.ErrRefused) {
		t.Errorf("a stranger is attested: %v", err)
	}
	last := ctx.WithBlockTime(time.Unix(r.Until, 0))
	if err := k.Quotes.Expire(last); err != nil || !attested(last) {
		t.Errorf("it ended before its time: %v", err)
	}
	later := ctx.WithBlockTime(time.Unix(r.Until+1, 0))
	if err := k.Quotes.Expire(later); err != nil || attested(later) {
		t.Errorf("it did not end: %v", err)
	}
}

// older is a quote with a list from before the one that the chain has seen.
func older(k *Keeper, ctx sdk.Context, id string, block int64) *registrypb.MsgSubmitQuote {
	s := teetest.NewSNP(about(k, ctx, block, id, "peer"))
	s.List.ThisUpdate = s.List.ThisUpdate.Add(-time.Second)
	return submission(id, block, s.Evidence())
}

// A worker that changes its transport key is attested no more, also when it changes it back; a new quote in the place
// of another one ends at its own time.
func TestAQuoteIsOfOneTransportKey(t *testing.T) {
	k, server, ctx := town(t)
	id, block := named(0), ctx.BlockHeight()-1
	submit := func() {
		t.Helper()
		m := submission(id, block, teetest.NewDCAP(about(k, ctx, block, id, "peer"), true).Evidence())
		if _, err := server.SubmitQuote(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	submit()
	for _, peer := range []string{"peer", "other", "peer"} {
		if _, err := server.UpdateAddresses(ctx, &registrypb.MsgUpdateAddresses{Sender: id, PeerId: peer}); err != nil {
			t.Fatal(err)
		}
		if p, _ := k.Get(ctx, id); p.Attested() != (peer == "peer" && p.Quote.Until > 0) {
			t.Errorf("%s: %+v", peer, p.Quote)
		}
	}
	q := quotes.Answers{List: k.Quotes}
	if _, err := q.Attestation(ctx, &registrypb.QueryAttestationRequest{Id: id}); err == nil {
		t.Error("an attestation of an earlier transport key is shown")
	}
	submit()
	ctx = ctx.WithBlockTime(teetest.Now.Add(time.Hour))
	submit()
	after := ctx.WithBlockTime(teetest.Now.Add(attestation.MaxAge*time.Second + time.Minute))
	if err := k.Quotes.Expire(after); err != nil {
		t.Fatal(err)
	}
	if p, _ := k.Get(after, id); !p.Attested() {
		t.Error("a new quote ended with the old one")
	}
}

// Governance pins roots, and attests no machine; a quote under a root that is not pinned is refused.
func TestGovernancePinsRoots(t *testing.T) {
	k, server, ctx := town(t)
	if _, err := server.Attest(ctx, &registrypb.MsgAttest{Participant: named(0), Attested: true}); !errors.Is(err,
		quotes.ErrNoFlag) {
		t.Errorf("a flag: %v", err)
	}
	if _, err := server.PinRoots(ctx, &registrypb.MsgPinRoots{Authority: named(0)}); err == nil {
		t.Error("a worker pins roots")
	}
	twice := registrypb.Root{Technology: "tdx", Digest: slices.Repeat([]byte{1}, 32)}
	for name, roots := range map[string][]registrypb.Root{"twice": {twice, twice}, "short": {{Technology: "tdx"}},
		"unknown": {{Technology: "sgx", Digest: twice.Digest}},
		"least":   {{Technology: "tdx", Digest: twice.Digest, Least: 1}}} {
		if _, err := server.PinRoots(ctx, &registrypb.MsgPinRoots{Roots: roots}); !errors.Is(err, attestation.ErrRoots) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := server.PinRoots(ctx, &registrypb.MsgPinRoots{}); err != nil {
		t.Fatal(err)
	}
	block := ctx.BlockHeight() - 1
	_, err := server.SubmitQuote(ctx,
		submission(named(0), block, teetest.NewSNP(about(k, ctx, block, named(0), "peer")).Evidence()))
	refusedBy(t, err, check.Root)
}
