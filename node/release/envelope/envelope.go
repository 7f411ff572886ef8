// Package envelope encrypts the shards of a job's data, each under a key of its own, and the keys for the member that
// they are released to: AES-256-GCM (NIST SP 800-38D) for shards, HKDF-SHA256 (RFC 5869) for their keys, and hybrid
// public-key encryption (RFC 9180) for released ones. All of it is of the standard library.
//
// It does not know who may have a key: node/release does.
package envelope

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/node/folder"
)

// Sizes, in bytes.
const (
	KeyBytes    = 32
	recordBytes = 4 + KeyBytes // a key with the number of its shard
	addedBytes  = 16           // the tag, by which a shard grows
)

// MaxKeys is how many keys one envelope holds at most.
const MaxKeys = 100

var (
	// ErrKey says that a shard does not open with a key.
	ErrKey = errors.New("the key is not that of the shard")
	// ErrEnvelope says that an envelope does not open, or holds something else than keys.
	ErrEnvelope = errors.New("the keys of shards cannot be read")
)

// Secret is the secret of a job, from which the keys of its shards are derived.
type Secret [KeyBytes]byte

// OpenSecret reads the secret in a file, which it makes if there is none.
func OpenSecret(path string) (s Secret, err error) {
	s, err = ReadSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	_, _ = rand.Read(s[:]) // never fails
	return s, folder.WriteSecret(path, s[:])
}

// ReadSecret reads the secret in a file.
func ReadSecret(path string) (s Secret, err error) {
	raw, err := os.ReadFile(path)
	if err == nil && len(raw) != len(s) {
		err = fmt.Errorf("%s has %d bytes, a secret has %d", path, len(raw), len(s))
	}
	if err == nil {
		copy(s[:], raw)
	}
	return s, err
}

// Key is the key of a shard of a corpus: of its number and its content, so that a key never encrypts two texts.
func (s Secret) Key(shard int, plain canon.Digest) []byte {
	info := binary.BigEndian.AppendUint64([]byte("starling/shard/1"), uint64(shard))
	key, err := hkdf.Key(sha256.New, s[:], nil, string(append(info, plain[:]...)), KeyBytes)
	if err != nil {
		panic(err) // the length is right
	}
	return key
}

// Seal encrypts shard i of a corpus. It is deterministic.
func (s Secret) Seal(m data.Manifest, i int, shard []byte) ([]byte, error) {
	if err := m.VerifyShard(i, shard); err != nil {
		return nil, err
	}
	return gcm(s.Key(i, m.Shards[i])).Seal(make([]byte, 0, len(shard)+addedBytes), nonce(), shard, nil), nil
}

// OpenShard decrypts a shard: ErrKey if the key is another.
func OpenShard(key, sealed []byte) ([]byte, error) {
	if len(key) != KeyBytes {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrKey, len(key))
	}
	plain, err := gcm(key).Open(nil, nonce(), sealed, nil)
	if err != nil {
		return nil, ErrKey
	}
	return plain, nil
}

// gcm is the cipher of a key of KeyBytes.
func gcm(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length is right
	}
	c, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the block is of 16 bytes
	}
	return c
}

// nonce is the same for all shards: each has a key of its own.
func nonce() []byte { return make([]byte, 12) }

// Keys are keys by the number of their shard.
type Keys map[int][]byte

// NewPrivate returns a private key to which keys of shards are encrypted: X25519, as in node/sale.
func NewPrivate() (hpke.PrivateKey, error) { return hpke.DHKEM(ecdh.X25519()).GenerateKey() }

// info binds an envelope to a job and a member: that of another does not open.
func info(job, member string) []byte {
	d := canon.Sum("starling/release/1", []byte(job), []byte(member))
	return d[:]
}

// Enclose encrypts keys of shards, at most MaxKeys, to the public key of a member.
func Enclose(public []byte, job, member string, numbers []int, keys Keys) ([]byte, error) {
	if len(numbers) > MaxKeys {
		return nil, fmt.Errorf("envelope: %d keys, at most %d", len(numbers), MaxKeys)
	}
	to, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	return hpke.Seal(to, hpke.HKDFSHA256(), hpke.AES256GCM(), info(job, member), AppendRecords(nil, numbers, keys))
}

// Disclose decrypts an envelope: ErrEnvelope if it is not of keys for this member.
func Disclose(private hpke.PrivateKey, job, member string, sealed []byte) (Keys, error) {
	raw, err := hpke.Open(private, hpke.HKDFSHA256(), hpke.AES256GCM(), info(job, member), sealed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEnvelope, err)
	}
	if len(raw) > MaxKeys*recordBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrEnvelope, len(raw), MaxKeys*recordBytes)
	}
	keys := Keys{}
	if rest := keys.ReadRecords(raw); len(rest) > 0 {
		return nil, fmt.Errorf("%w: %d bytes are no key", ErrEnvelope, len(rest))
	}
	return keys, nil
}

// AppendRecords appends keys, each after the number of its shard.
func AppendRecords(to []byte, numbers []int, keys Keys) []byte {
	for _, i := range numbers {
		to = append(binary.BigEndian.AppendUint32(to, uint32(i)), keys[i]...)
	}
	return to
}

// ReadRecords adds the keys that AppendRecords wrote, and returns the bytes after the last whole one.
func (k Keys) ReadRecords(raw []byte) (rest []byte) {
	for ; len(raw) >= recordBytes; raw = raw[recordBytes:] {
		k[int(binary.BigEndian.Uint32(raw))] = raw[4:recordBytes:recordBytes]
	}
	return raw
}
