package kernel_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNoContraction looks for fused instructions in what the compiler makes of the arithmetic where it is free to fuse:
// a product that feeds a sum without an explicit conversion.
func TestNoContraction(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the packages")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go tool")
	}
	fused := regexp.MustCompile(`(?m)^\s.*\((\S+\.go:\d+)\)\s+(V?FN?M(?:ADD|SUB)\S*)`)
	for _, port := range [][]string{{"GOARCH=arm64"}, {"GOARCH=amd64", "GOAMD64=v3"}} {
		cmd := exec.Command(goTool, "build", "-gcflags=-S", ".", "./elementary", "./matmul", "./attention", "../detmath",
			"../detmath/single", "../philox")
		cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), port...)
		listing, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", port, err, listing)
		}
		if !bytes.Contains(listing, []byte("TEXT")) {
			t.Fatalf("%v: the compiler printed no assembly", port)
		}
		for _, m := range fused.FindAllSubmatch(listing, -1) {
			t.Errorf("%v: %s at %s: write float32(x*y) + z", port, m[2], m[1])
		}
	}
}

// TestAssemblyIsFusedInProductsOnly: formulas over float64 would hardly show a fused operation.
func TestAssemblyIsFusedInProductsOnly(t *testing.T) {
	var scalar []string
	for _, pattern := range []string{"*_amd64.s", "elementary/*_amd64.s"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		scalar = append(scalar, files...)
	}
	if len(scalar) < 3 {
		t.Fatalf("assembly: %v", scalar)
	}
	products, err := filepath.Glob("matmul/*_amd64.s")
	if err != nil || len(products) < 3 {
		t.Fatalf("assembly of products: %v, %v", products, err)
	}
	fused := regexp.MustCompile(`VFN?M(ADD|SUB)\w*`)
	for _, name := range append(scalar, products...) {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := fused.Find(source)
		if product := strings.HasPrefix(name, "matmul"); product != (found != nil) {
			t.Errorf("%s has %q", name, found)
		}
	}
}
