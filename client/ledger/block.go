package ledger

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"

	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/client/query"
)

// Record is a block as it is stored, with the results of its transactions.
type Record struct {
	Height   int64
	Time     time.Time
	Hash     string // hexadecimal, as all digests here
	AppHash  string // of the state before the block
	Proposer string
	Signed   int // votes in its commit; 0: it has none yet
	Bytes    int
	Txs      []Tx
}

// Tx is a transaction in a block.
type Tx struct {
	Hash     string
	Height   int64
	Code     uint32 // 0: it was executed
	Log      string // of one that was refused
	GasUsed  int64
	Messages []string // types, such as starling.training.v1.MsgCommit
	Signers  []string // addresses
	Bytes    int

	Fee       uint64 // uzen that its signers offered for it
	Memo      string
	Transfers []Transfer
}

// Record is the block at a height; ErrNotFound if it is not made yet, or not kept any more.
func (l Ledger) Record(ctx context.Context, height int64) (Record, error) {
	b, err := l.rpc.Block(ctx, &height)
	if err != nil {
		return Record{}, fmt.Errorf("%w: block %d: %w", query.ErrNotFound, height, err)
	}
	r := Record{
		Height: height, Time: b.Block.Time, Hash: hex.EncodeToString(b.BlockID.Hash),
		AppHash:  hex.EncodeToString(b.Block.AppHash),
		Proposer: b.Block.ProposerAddress.String(), Bytes: b.Block.Size(),
	}
	results, err := l.rpc.BlockResults(ctx, &height)
	if err != nil {
		return Record{}, fmt.Errorf("client: %w", err)
	}
	for i, raw := range b.Block.Txs {
		t, ok := describe(raw)
		if i < len(results.TxsResults) {
			x := results.TxsResults[i]
			t.Code, t.GasUsed, t.Log = x.Code, x.GasUsed, x.Log
		}
		t.Height = height
		// The votes' extensions of the block before travel as the first transaction, which has no signer.
		if ok || i > 0 {
			r.Txs = append(r.Txs, t)
		}
	}
	if commit, err := l.rpc.Commit(ctx, &height); err == nil && commit.Commit != nil {
		for _, s := range commit.Commit.Signatures {
			if len(s.Signature) > 0 {
				r.Signed++
			}
		}
	}
	return r, nil
}

// indexed is the height at which the validator's index of transactions has one, or 0.
func (l Ledger) indexed(ctx context.Context, hash string) int64 {
	raw, err := hex.DecodeString(hash)
	if err != nil {
		return 0
	}
	r, err := l.rpc.Tx(ctx, raw, false)
	if err != nil {
		return 0 // or there is no index
	}
	return r.Height
}

// searched bounds the blocks in which a transaction is looked for.
const searched = 200

// FindTx is the transaction with a hash, hexadecimal, in the block at a height, or, for height 0, wherever the
// validator's index has it, or else in one of the latest 200 blocks: the validator of an embedded network keeps no
// index. ErrNotFound if it is in none of them.
func (l Ledger) FindTx(ctx context.Context, hash string, height int64) (Tx, error) {
	if height == 0 {
		height = l.indexed(ctx, hash)
	}
	from, to := height, height
	if height == 0 {
		head, err := l.Head(ctx)
		if err != nil {
			return Tx{}, err
		}
		from, to = max(1, head.Height-searched+1), head.Height
	}
	for ; to >= from; to-- {
		b, err := l.rpc.Block(ctx, &to)
		if err != nil {
			break // it is not kept, nor those before it
		}
		at := slices.IndexFunc(b.Block.Txs,
			func(raw cmttypes.Tx) bool { return strings.EqualFold(hex.EncodeToString(raw.Hash()), hash) })
		if at < 0 {
			continue
		}
		r, err := l.Record(ctx, to)
		if err != nil {
			return Tx{}, err
		}
		if at = slices.IndexFunc(r.Txs, func(t Tx) bool { return strings.EqualFold(t.Hash, hash) }); at >= 0 {
			return r.Txs[at], nil
		}
	}
	if err := ctx.Err(); err != nil {
		return Tx{}, err
	}
	return Tx{}, fmt.Errorf("%w: transaction %s", query.ErrNotFound, hash)
}

// describe reads the messages and the signer of a transaction; ok is false for bytes that are no transaction.
func describe(raw cmttypes.Tx) (t Tx, ok bool) {
	t = Tx{Hash: hex.EncodeToString(raw.Hash()), Bytes: len(raw)}
	e, err := wire.Shared()
	if err != nil {
		return t, false
	}
	decoded, err := e.Tx.TxDecoder()(raw)
	if err != nil {
		return t, false
	}
	for _, m := range decoded.GetMsgs() {
		t.Messages = append(t.Messages, strings.TrimPrefix(sdk.MsgTypeURL(m), "/"))
		t.Transfers = append(t.Transfers, transfers(m)...)
	}
	if x, is := decoded.(sdk.FeeTx); is {
		t.Fee = uzenOf(x.GetFee())
	}
	if x, is := decoded.(sdk.TxWithMemo); is {
		t.Memo = x.GetMemo()
	}
	if signed, is := decoded.(authsigning.SigVerifiableTx); is {
		if all, err := signed.GetSigners(); err == nil {
			for _, s := range all {
				t.Signers = append(t.Signers, sdk.AccAddress(s).String())
			}
		}
	}
	return t, true
}
