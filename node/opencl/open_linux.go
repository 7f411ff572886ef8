package opencl

import "github.com/ebitengine/purego"

// open loads a library, and returns what finds its functions.
func open(library string) (find func(name string) (uintptr, error), err error) {
	lib, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	return func(name string) (uintptr, error) { return purego.Dlsym(lib, name) }, err
}
