// SPDX-License-Identifier: Apache-2.0

package images

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/hypershift/support/containerimage"
)

// filterLinks are the names under which xtables-nft-multi is called.
var filterLinks = []string{
	"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore",
}

// packetFilterTools returns nft and iptables of the host, with the libraries that they load. The images of kube-proxy
// and the node network need them, and they cannot be linked statically.
func packetFilterTools() ([]containerimage.File, error) {
	programs := map[string]string{}
	for _, name := range []string{"nft", "xtables-nft-multi"} {
		found, err := findProgram(name)
		if err != nil {
			return nil, err
		}
		programs[name] = found
	}
	extensions, err := filepath.Glob("/usr/lib/*/xtables/lib*.so")
	if err != nil {
		return nil, err
	}
	libraries, err := libraryClosure(append([]string{programs["nft"], programs["xtables-nft-multi"]}, extensions...))
	if err != nil {
		return nil, err
	}
	var files []containerimage.File
	for name, source := range programs {
		files = append(files, containerimage.File{Path: "/usr/sbin/" + name, Source: source})
	}
	for _, name := range filterLinks {
		files = append(files, containerimage.File{Path: "/usr/sbin/" + name, Link: "xtables-nft-multi"})
	}
	for _, source := range slices.Concat(extensions, libraries) {
		files = append(files, containerimage.File{Path: source, Source: source})
	}
	return files, nil
}

func findProgram(name string) (string, error) {
	for _, dir := range []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if found := filepath.Join(dir, name); isFile(found) {
			return found, nil
		}
	}
	return "", fmt.Errorf("%s is not on this machine: run `make os-commands` as root, or install iptables and nftables", name)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// libraryClosure returns the shared libraries of the programs, recursively, and the loader.
func libraryClosure(programs []string) ([]string, error) {
	seen := map[string]bool{}
	for queue := slices.Clone(programs); len(queue) > 0; queue = queue[1:] {
		needed, err := neededLibraries(queue[0])
		if err != nil {
			return nil, err
		}
		for _, library := range needed {
			if !seen[library] {
				seen[library] = true
				queue = append(queue, library)
			}
		}
	}
	var all []string
	for library := range seen {
		all = append(all, library)
	}
	slices.Sort(all)
	return all, nil
}

func neededLibraries(program string) ([]string, error) {
	file, err := elf.Open(program)
	if err != nil {
		return nil, fmt.Errorf("reading the libraries that %s needs: %w", program, err)
	}
	defer func() { _ = file.Close() }()
	names, err := file.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("reading the libraries that %s needs: %w", program, err)
	}
	var found []string
	for _, name := range names {
		library, err := findLibrary(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
		found = append(found, library)
	}
	if loader := interpreter(file); loader != "" {
		found = append(found, loader)
	}
	return found, nil
}

func findLibrary(name string) (string, error) {
	for _, pattern := range []string{"/usr/lib/*-linux-gnu", "/lib/*-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib"} {
		matches, err := filepath.Glob(filepath.Join(pattern, name))
		if err != nil {
			return "", err
		}
		if len(matches) > 0 {
			return matches[0], nil
		}
	}
	return "", fmt.Errorf("its library %s is not on this machine", name)
}

// interpreter returns the loader of the program; empty if it has none.
func interpreter(file *elf.File) string {
	for _, segment := range file.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(name, 0); err == nil {
			return strings.TrimRight(string(name), "\x00")
		}
	}
	return ""
}
