// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
)

// options returns the default options of serve, with a change.
func options(change func(*serveOptions)) *serveOptions {
	o := &serveOptions{
		listen: "192.0.2.1:5240", users: []string{"admin", "alice"}, admins: []string{"admin"}, version: "3.4", boot: "none", speed: 1, random: 1,
		durations: lifecycle.Realistic,
	}
	change(o)
	return o
}

func made(t *testing.T, o *serveOptions) *simulator.Simulator {
	t.Helper()
	s, err := o.simulator()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func readKeys(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	if err := json.Unmarshal(raw, &keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestKeyFile verifies that keys in the file are kept, that missing keys are generated, and that every user in the file
// exists.
func TestKeyFile(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "keys.json")
	g.Expect(os.WriteFile(path, []byte(`{"alice": "a:b:c", "zoe": "d:e:f", "eve": ""}`), 0o600)).To(Succeed())
	s := made(t, options(func(o *serveOptions) {
		o.keys, o.admins = path, []string{"admin", "zoe", "root"}
	}))
	keys := readKeys(t, path)
	g.Expect(keys).To(Equal(s.Keys()))
	g.Expect(keys).To(And(HaveLen(5), HaveKeyWithValue("alice", "a:b:c"), HaveKeyWithValue("zoe", "d:e:f"), HaveKeyWithValue("eve", MatchRegexp(`^\w{18}:\w{18}:\w{32}$`)),
		HaveKey("admin"), HaveKey("root")))
	g.Expect(s.DB.View(func() error {
		for name, admin := range map[string]bool{"admin": true, "zoe": true, "root": true, "alice": false, "eve": false} {
			g.Expect(s.DB.Users.Get(name).Superuser).To(Equal(admin), name)
		}
		return nil
	})).To(Succeed())
}

// TestPlaces verifies that paths without their own flag are in the state folder.
func TestPlaces(t *testing.T) {
	g := NewWithT(t)
	dir, elsewhere := filepath.Join(t.TempDir(), "a", "b"), t.TempDir()
	made(t, options(func(o *serveOptions) {
		o.stateDir, o.keys = dir, filepath.Join(elsewhere, "own.json")
	}))
	g.Expect(filepath.Join(dir, "state.jsonl")).To(BeARegularFile())
	g.Expect(filepath.Join(dir, "keys.json")).NotTo(BeAnExistingFile())
	keys := readKeys(t, filepath.Join(elsewhere, "own.json"))
	for name, key := range keys {
		raw, err := os.ReadFile(filepath.Join(dir, name+".key"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(Equal(key + "\n"))
	}
	info, err := os.Stat(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)))

	made(t, options(func(o *serveOptions) {
		o.stateDir, o.state = filepath.Join(elsewhere, "c"), filepath.Join(elsewhere, "own.state")
	}))
	g.Expect(filepath.Join(elsewhere, "own.state")).To(BeARegularFile())
	g.Expect(filepath.Join(elsewhere, "c", "state.jsonl")).NotTo(BeAnExistingFile())
	g.Expect(filepath.Join(elsewhere, "c", "keys.json")).To(BeARegularFile())
}

// TestKeysThatCannotBeKept verifies that serve returns an error if it cannot write the file of a generated key.
// Without the file, the user has no way to get the key.
func TestKeysThatCannotBeKept(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.Mkdir(filepath.Join(dir, "alice.key"), 0o700)).To(Succeed())
	_, err := options(func(o *serveOptions) { o.stateDir = dir }).simulator()
	g.Expect(err).To(MatchError(ContainSubstring("writing the API key of alice: ")))
}

// TestNamesOfKeyFiles verifies that a user's name cannot lead to a file outside of the folder.
func TestNamesOfKeyFiles(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "state")
	made(t, options(func(o *serveOptions) { o.stateDir, o.users = dir, []string{"../../out"} }))
	g.Expect(filepath.Join(dir, "out.key")).To(BeARegularFile())
	g.Expect(filepath.Join(dir, "../../out.key")).NotTo(BeAnExistingFile())
}

// TestWhatMachinesAreTold verifies that the default metadata URL is the listen address, and that the speed does not
// change timeouts.
func TestWhatMachinesAreTold(t *testing.T) {
	g := NewWithT(t)
	s := made(t, options(func(o *serveOptions) { o.speed = 60 }))
	g.Expect(s.Life.MetadataURL).To(Equal("http://192.0.2.1:5240/MAAS/metadata/"))
	g.Expect(s.Life.Durations).To(And(HaveField("Deploy", 4*time.Second), HaveField("DeployTimeout", time.Hour)))
	s = made(t, options(func(o *serveOptions) { o.metadataURL = "https://maas.example/metadata/" }))
	g.Expect(s.Life.MetadataURL).To(Equal("https://maas.example/metadata/"))
	g.Expect(s.Machines()).NotTo(BeEmpty(), "there is a site without a seed")
	seed := filepath.Join(t.TempDir(), "seed.json")
	g.Expect(os.WriteFile(seed, []byte(`{"machines": [{"hostname": "mine"}]}`), 0o600)).To(Succeed())
	s = made(t, options(func(o *serveOptions) { o.seed = seed }))
	g.Expect(s.Machines()).To(HaveExactElements(HaveField("Hostname", "mine")))
}
