package goods

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/protocol/sale"
)

var key = bytes.Repeat([]byte{7}, sale.KeyBytes)

// model writes a folder with files of all kinds of length.
func model(t testing.TB) string {
	dir := t.TempDir()
	random := make([]byte, 3*blockBytes+100)
	_, _ = rand.Read(random)
	for name, n := range map[string]int{"model.safetensors": len(random), "config.json": 1, "empty": 0, "sub/a.txt": 4096,
		"sub/b.txt": 4097, ".hidden": 10, ".git/config": 10} {
		put(t, dir, name, random[:n])
	}
	return dir
}

func put(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func sealed(t testing.TB, from string) (dir string, c sale.Content, x *Index) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "sealed")
	c, err := Seal(t.Context(), Source{Folder: from}, dir, sale.LeafKeys, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	if x, err = Examine(dir, c); err != nil {
		t.Fatal(err)
	}
	return dir, c, x
}

func code(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e.Code
	}
	return ""
}

func TestRoundTrip(t *testing.T) {
	from := model(t)
	dir, c, x := sealed(t, from)
	if err := CheckSealed(t.Context(), dir, x, c); err != nil {
		t.Fatal(err)
	}
	if len(x.Parts) != 5 || c.Bytes != x.Bytes() {
		t.Fatalf("%v", x.Parts)
	}
	if d, err := Describe(t.Context(), Source{Folder: from}, nil); err != nil || d != c.Index {
		t.Errorf("the files are described as %s, and sold as %s: %v", d.Short(), c.Index.Short(), err)
	}
	to := filepath.Join(t.TempDir(), "to")
	last := int64(0)
	if err := Unseal(t.Context(), dir, to, c, x, key, func(done, _ int64) { last = done }); err != nil {
		t.Fatal(err)
	}
	for _, p := range x.Parts {
		want, _ := os.ReadFile(filepath.Join(from, p.Path))
		got, err := os.ReadFile(filepath.Join(to, p.Path))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v", p.Path, err)
		}
	}
	if uint64(last) != c.Bytes {
		t.Errorf("progress ends at %d of %d", last, c.Bytes)
	}
	if same, err := Present(t.Context(), to, x); !same || err != nil {
		t.Error(same, err)
	}
	if err := Unseal(t.Context(), dir, to, c, x, key, nil); code(err) != fault.Exists {
		t.Errorf("over files: %v", err)
	}
	put(t, to, "sub/a.txt", make([]byte, 4096))
	if same, err := Present(t.Context(), to, x); same || code(err) != fault.Exists {
		t.Error(same, err)
	}
}

// The roots are those that an implementation without blocks and threads computes.
func TestRootsAreThoseOfLeaves(t *testing.T) {
	dir := model(t)
	dir2, c, x := sealed(t, dir)
	cipher, _ := c.Scheme.NewCipher(key)
	var plain, secret []canon.Digest
	for _, p := range x.Parts {
		data, _ := os.ReadFile(filepath.Join(dir, p.Path))
		for len(data) > 0 {
			leaf := data[:min(len(data), sale.LeafBytes)]
			data = data[len(leaf):]
			out := make([]byte, len(leaf))
			cipher.Leaf(uint64(len(plain)), out, leaf)
			plain, secret = append(plain, canon.Leaf(leaf)), append(secret, canon.Leaf(out))
		}
	}
	if c.Plain != canon.NewTree(plain).Root() || c.Sealed != canon.NewTree(secret).Root() || int(c.Leaves) != len(plain) {
		t.Error("other roots")
	}
	if info, err := os.Stat(filepath.Join(dir2, FileSealed)); err != nil || uint64(info.Size()) != c.Bytes {
		t.Error(err)
	}
}

func TestSealOneFile(t *testing.T) {
	from := model(t)
	_, c, x := sealed(t, filepath.Join(from, "sub", "b.txt"))
	if len(x.Parts) != 1 || x.Parts[0].Path != "b.txt" || c.Leaves != 2 || c.Bytes != 4097 {
		t.Errorf("%v %v", x.Parts, c)
	}
}

func TestSealRefuses(t *testing.T) {
	for name, spoil := range map[string]func(dir string){
		"a link that leads out": func(dir string) {
			if err := os.Symlink(filepath.Join(t.TempDir(), "x"), filepath.Join(dir, "link")); err != nil {
				t.Skip(err)
			}
		},
		"a link to a folder":  func(dir string) { _ = os.Symlink("sub", filepath.Join(dir, "link")) },
		"the folder of a run": func(dir string) { put(t, dir, "run.json", []byte("{}")) },
		"a key":               func(dir string) { put(t, dir, "network/validator/key", []byte("secret")) },
		"no bytes":            func(dir string) { _ = os.RemoveAll(dir); put(t, dir, "a", nil) },
	} {
		from, to := model(t), t.TempDir()
		spoil(from)
		if runtime.GOOS == "windows" {
			t.Skip("links need rights there")
		}
		if _, err := Seal(t.Context(), Source{Folder: from}, to, sale.OneKey, key, nil); code(err) != fault.BadFolder {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(to); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	from := model(t)
	dir, _, _ := sealed(t, from)
	if _, err := Seal(t.Context(), Source{Folder: from}, dir, sale.OneKey, key, nil); code(err) != fault.Exists {
		t.Errorf("a key for two contents: %v", err)
	}
	out := Source{from, []string{"../x"}}
	if _, err := Seal(t.Context(), out, t.TempDir(), sale.OneKey, key, nil); code(err) != fault.BadFolder {
		t.Errorf("a path that leads out: %v", err)
	}
	if _, err := Seal(t.Context(), Source{Folder: from}, t.TempDir(), sale.OneKey, key[1:], nil); err == nil {
		t.Error("a short key")
	}
}

// Every change to the two files is found before a payment.
func TestExamineRefuses(t *testing.T) {
	dir, c, x := sealed(t, model(t))
	data := canon.MustMarshal(x)
	for name, change := range map[string]func(x *Index, c *sale.Content){
		"another digest":     func(x *Index, _ *sale.Content) { x.Digests[5] ^= 1 },
		"leaves":             func(_ *Index, c *sale.Content) { c.Leaves++ },
		"bytes":              func(x *Index, _ *sale.Content) { x.Parts[0].Bytes++ },
		"too few digests":    func(x *Index, _ *sale.Content) { x.Digests = x.Digests[32:] },
		"another format":     func(x *Index, _ *sale.Content) { x.Format++ },
		"a path outside":     func(x *Index, _ *sale.Content) { x.Parts[0].Path = "../a" },
		"an absolute path":   func(x *Index, _ *sale.Content) { x.Parts[0].Path = "/a" },
		"a file as a folder": func(x *Index, _ *sale.Content) { x.Parts[2].Path = "empty/x" },
		"a path twice":       func(x *Index, _ *sale.Content) { x.Parts[1].Path = x.Parts[0].Path },
		"two cases":          func(x *Index, _ *sale.Content) { x.Parts[0].Path = "Empty" },
		"a device":           func(x *Index, _ *sale.Content) { x.Parts[0].Path = "com1.txt" },
		"another key":        func(_ *Index, c *sale.Content) { c.Plain[0] ^= 1 },
	} {
		y, d := &Index{}, c
		if err := canon.Unmarshal(data, y); err != nil {
			t.Fatal(err)
		}
		change(y, &d)
		out := canon.MustMarshal(y)
		d.Index = indexDigest(out)
		put(t, dir, FileIndex, out)
		if _, err := Examine(dir, d); code(err) != fault.BadIndex {
			t.Errorf("%s: %v", name, err)
		}
	}
	put(t, dir, FileIndex, append(data, 0))
	if _, err := Examine(dir, c); code(err) != fault.BadIndex {
		t.Errorf("bytes after the end: %v", err)
	}
	file := filepath.Join(dir, FileSealed)
	whole, _ := os.ReadFile(file)
	for name, bytes := range map[string][]byte{"short": whole[1:], "long": append(whole[:len(whole):len(whole)], 0),
		"changed": append(append(whole[:9:9], whole[9]^1), whole[10:]...)} {
		put(t, dir, FileSealed, bytes)
		if err := CheckSealed(t.Context(), dir, x, c); code(err) != fault.BadSealed {
			t.Errorf("%s: %v", name, err)
		}
		if name == "long" {
			continue // Unseal does not read past the leaves
		}
		if err := Unseal(t.Context(), dir, filepath.Join(t.TempDir(), "to"), c, x, key, nil); code(err) == "" {
			t.Errorf("%s: a seller is accused of a fault of the disk: %v", name, err)
		}
	}
}

// A leaf that does not decrypt to its digest makes evidence that the rules take, and so does another key.
func TestUnsealShowsLies(t *testing.T) {
	for _, leaf := range []int{0, 1, 700, 1538, 1539, 1540} {
		dir, c, x := sealed(t, model(t))
		x.Digests[32*leaf] ^= 1
		if leaf > 1 {
			x.Digests[len(x.Digests)-1] ^= 1 // a later one, too
		}
		c.Plain = x.tree().Root()
		to := filepath.Join(t.TempDir(), "to")
		err := Unseal(t.Context(), dir, to, c, x, key, nil)
		lie, ok := errors.AsType[*Lie](err)
		if !ok || int(lie.Evidence.Index) != leaf || lie.OfKey() {
			t.Fatalf("leaf %d: %v", leaf, err)
		}
		if err := lie.Evidence.Shows(c, key); err != nil {
			t.Errorf("leaf %d: %v", leaf, err)
		}
		e, err := sale.ParseEvidence(canon.MustMarshal(lie.Evidence))
		if err != nil || e.Shows(c, key) != nil {
			t.Errorf("leaf %d: the bytes of the evidence: %v", leaf, err)
		}
		if left, _ := os.ReadDir(filepath.Dir(to)); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	}
	dir, c, x := sealed(t, model(t))
	other := bytes.Repeat([]byte{8}, sale.KeyBytes)
	err := Unseal(t.Context(), dir, filepath.Join(t.TempDir(), "to"), c, x, other, nil)
	if lie, ok := errors.AsType[*Lie](err); !ok || !lie.OfKey() || lie.Evidence.Shows(c, other) != nil {
		t.Errorf("another key: %v", err)
	}
}

// A folder that cannot be written hides no lie, and one without a lie is an error of the disk.
func TestNoDiskHidesALie(t *testing.T) {
	for _, lied := range []bool{false, true} {
		dir, c, x := sealed(t, model(t))
		if lied {
			x.Digests[32*700] ^= 1
			c.Plain = x.tree().Root()
		}
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		err := Unseal(t.Context(), dir, filepath.Join(file, "to"), c, x, key, nil)
		if _, ok := errors.AsType[*Lie](err); ok != lied || err == nil {
			t.Errorf("a lie: %v: %v", lied, err)
		}
	}
}

func TestReservedNames(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "a/b.c": true, "com.txt": true, "com10": true, "lpt1": false,
		"a/NUL": false, "a:b": false, `a\b`: false, "a//b": false, "a/": false, ".": false, "": false, "a.": false,
		"a\x00b": false, "\xff": false, ".gitattributes": true, "../a": false, "a/../b": false,
		"1/2/3/4/5/6/7/8/file": true, "1/2/3/4/5/6/7/8/9/file": false} {
		if err := checkPath(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// No bytes make the decoder of an index fail in another way than by an error, and those that it takes are canonical.
func FuzzIndex(f *testing.F) {
	x := &Index{Format: format, Parts: []Part{{"a", 5}, {"b/c", 0}}, Digests: make([]byte, 32)}
	f.Add(canon.MustMarshal(x))
	x.Parts[0].Bytes = 1 << 62
	f.Add(canon.MustMarshal(x))
	f.Add([]byte{0xa3})
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := parse(data)
		if err != nil {
			return
		}
		if !bytes.Equal(canon.MustMarshal(x), data) {
			t.Error("two encodings")
		}
		for _, p := range x.Parts {
			if !filepath.IsLocal(p.Path) {
				t.Errorf("a path outside: %q", p.Path)
			}
		}
		x.tree().Root()
	})
}

func benchFolder(b *testing.B) string {
	dir := b.TempDir()
	data := make([]byte, 100<<20)
	_, _ = rand.Read(data)
	put(b, dir, "model.safetensors", data)
	return dir
}

func BenchmarkSeal(b *testing.B) {
	from := benchFolder(b)
	b.SetBytes(100 << 20)
	for b.Loop() {
		if _, err := Seal(b.Context(), Source{Folder: from}, filepath.Join(b.TempDir(), "x"), sale.OneKey, key,
			nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnseal(b *testing.B) {
	dir, c, x := sealed(b, benchFolder(b))
	b.SetBytes(100 << 20)
	for b.Loop() {
		if err := Unseal(b.Context(), dir, filepath.Join(b.TempDir(), "x"), c, x, key, nil); err != nil {
			b.Fatal(err)
		}
	}
}
