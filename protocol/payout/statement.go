package payout

import (
	"crypto/ed25519"
	"fmt"
	"math/big"
)

// StatementFormat names the format of statements in JSON.
const StatementFormat = "starling-payout-claim/1"

// Statement is a claim at a chain whose addresses are keys, for any program there: the leaf with its path to the root
// of an epoch, and the signature of the key over all of it. docs/payouts.md has its bytes.
type Statement struct {
	Format    string   `json:"format"`
	Network   Digest   `json:"network"` // of the chain ID
	Chain     string   `json:"chain"`   // decimal
	Contract  Address  `json:"contract"`
	Epoch     string   `json:"epoch"` // decimal
	Root      Digest   `json:"root"`
	Address   string   `json:"address"` // base 58
	Account   Address  `json:"account"` // that stands for the key in the tree
	Token     Address  `json:"token"`
	Total     string   `json:"total"` // decimal, since the beginning
	Path      []Digest `json:"path"`
	Signature string   `json:"signature"` // hexadecimal, of the key over Message
}

// Claiming signs the statement of a claim with the key of its address. raw is the message and its signature, for
// programs that read no JSON. The error wraps ErrAddress if the claim is not of the key, or is that of Check.
func Claiming(chain string, b Bridge, epoch uint64, p Proof, secret ed25519.PrivateKey) (s Statement, raw []byte,
	_ error) {
	k := Key(secret.Public().(ed25519.PublicKey))
	if k.Address() != p.Account || !b.Keyed() {
		return s, nil, fmt.Errorf("%w: the claim is of %s, on chain %d", ErrAddress, p.Account, b.EVM)
	}
	if err := Check(p); err != nil {
		return s, nil, err
	}
	total := new(big.Int).SetBytes(p.Total)
	s = Statement{Format: StatementFormat, Network: Network(chain), Chain: fmt.Sprint(b.EVM), Contract: b.Contract,
		Epoch: fmt.Sprint(epoch), Root: RootOf(Claim{Account: p.Account, Token: p.Token, Total: total}.Leaf(), p.Path),
		Address: k.String(), Account: p.Account, Token: p.Token, Total: total.String(), Path: p.Path}
	message := statement(s, b.EVM, epoch, k, total)
	signature := ed25519.Sign(secret, message)
	s.Signature = fmt.Sprintf("%x", signature)
	return s, append(message, signature...), nil
}

// statement is the message that the key signs: words of 32 bytes, as the ABI has them.
func statement(s Statement, chain, epoch uint64, k Key, total *big.Int) []byte {
	tag := Keccak([]byte("starling payout claim 1"))
	var all []byte
	for _, w := range [][]byte{tag[:], s.Network[:], word64(chain), s.Contract.word(), word64(epoch), s.Root[:], k[:],
		s.Token.word(), word(total), word64(uint64(len(s.Path)))} {
		all = append(all, w...)
	}
	for _, p := range s.Path {
		all = append(all, p[:]...)
	}
	return all
}
