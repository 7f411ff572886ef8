package payout

import "math/big"

// Transaction is a call of a contract, or the creation of one, with a fee by EIP-1559.
type Transaction struct {
	Chain uint64
	Nonce uint64
	Tip   uint64 // wei for a unit of gas, to the proposer of the block
	Most  uint64 // wei for a unit of gas, in all
	Gas   uint64
	To    *Address // nil: Data creates a contract
	Data  []byte
}

// Sign returns the transaction with the signature of a wallet, as eth_sendRawTransaction takes it.
func (t Transaction) Sign(w Wallet) []byte {
	to := []byte{}
	if t.To != nil {
		to = t.To[:]
	}
	fields := [][]byte{rlpNumber(t.Chain), rlpNumber(t.Nonce), rlpNumber(t.Tip), rlpNumber(t.Most), rlpNumber(t.Gas),
		rlpBytes(to), rlpNumber(0), rlpBytes(t.Data), {0xc0}}
	const kind = 2 // EIP-2718
	s := w.Sign(Keccak([]byte{kind}, rlpList(fields)))
	fields = append(fields, rlpNumber(uint64(s[64])), rlpBig(s[:32]), rlpBig(s[32:64]))
	return append([]byte{kind}, rlpList(fields)...)
}

// The encoding of transactions (RLP, yellow paper, appendix B).

func rlpNumber(n uint64) []byte { return rlpBytes(new(big.Int).SetUint64(n).Bytes()) }

func rlpBig(b []byte) []byte { return rlpBytes(new(big.Int).SetBytes(b).Bytes()) }

func rlpBytes(b []byte) []byte {
	if len(b) == 1 && b[0] < 0x80 {
		return b
	}
	return append(rlpHead(0x80, len(b)), b...)
}

func rlpList(items [][]byte) []byte {
	var all []byte
	for _, b := range items {
		all = append(all, b...)
	}
	return append(rlpHead(0xc0, len(all)), all...)
}

func rlpHead(kind byte, n int) []byte {
	if n < 56 {
		return []byte{kind + byte(n)}
	}
	size := big.NewInt(int64(n)).Bytes()
	return append([]byte{kind + 55 + byte(len(size))}, size...)
}
