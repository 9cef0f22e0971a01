// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestMain(m *testing.M) {
	becomeMachine()
	os.Exit(m.Run())
}

// free returns an unused address.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serve runs the program until the test ends, or until stop is called.
func serve(t *testing.T, args ...string) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	cmd := command()
	cmd.SetArgs(append([]string{"serve"}, args...))
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	stop = func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return err.Error()
	}
	return body.String()
}

func TestServe(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "maas")
	api, admin := free(t), free(t)
	stop := serve(t, "--listen", api, "--admin-listen", admin, "--state-dir", dir, "--maas-version", "3.6", "--speed", "100")
	g.Eventually(func() string { return get("http://" + api + "/MAAS/api/2.0/version/") }, "1m").Should(ContainSubstring(`"version":"3.6.5"`))
	g.Eventually(func() string { return get("http://" + admin + "/machines") }, "1m").Should(ContainSubstring("calm-ant"))

	keys := map[string]string{}
	raw, err := os.ReadFile(filepath.Join(dir, "keys.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal(raw, &keys)).To(Succeed())
	g.Expect(keys).To(And(HaveKey("admin"), HaveKey("alice")))
	for _, name := range []string{"keys.json", "alice.key", "admin.key", "state.jsonl"} {
		info, err := os.Stat(filepath.Join(dir, name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), "only the caller reads %s", name)
	}

	seed := filepath.Join(t.TempDir(), "seed.json")
	dump := command()
	dump.SetArgs([]string{"dump", "--url", "http://" + api + "/MAAS", "--api-key-file", filepath.Join(dir, "admin.key"), "--output", seed})
	g.Expect(dump.ExecuteContext(t.Context())).To(Succeed())
	g.Expect(stop()).To(Succeed())

	again := free(t)
	serve(t, "--listen", again, "--state-dir", dir, "--seed", seed)
	g.Eventually(func() string { return get("http://" + again + "/MAAS/api/2.0/version/") }, "1m").Should(ContainSubstring(`"version":"3.4.10"`))
	raw2, err := os.ReadFile(filepath.Join(dir, "keys.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(raw2).To(Equal(raw), "keys stay")
}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(bad, []byte("[1]"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := map[string]struct {
		args []string
		says string
	}{
		"the version is unknown":          {[]string{"serve", "--maas-version", "2.9"}, "use 3.2 to 3.7, or main"},
		"the backend is unknown":          {[]string{"serve", "--boot", "tape"}, "use none or netns"},
		"the speed is zero":               {[]string{"serve", "--speed", "0"}, "--speed=0 must be greater than 0"},
		"the seed is missing":             {[]string{"serve", "--seed", filepath.Join(dir, "none")}, "reading --seed"},
		"the seed is invalid":             {[]string{"serve", "--seed", bad}, "it must be one JSON object"},
		"the keys are invalid":            {[]string{"serve", "--keys", bad}, "reading --keys"},
		"the address is in use":           {[]string{"serve", "--listen", taken.Addr().String()}, "choose another address"},
		"the state dir is a file":         {[]string{"serve", "--state-dir", bad}, "making --state-dir"},
		"machines have no folder":         {[]string{"serve", "--boot", "netns"}, "--boot=netns needs"},
		"dump has no URL":                 {[]string{"dump"}, "dump needs --url"},
		"dump has no key":                 {[]string{"dump", "--url", "http://127.0.0.1:1", "--api-key-file", filepath.Join(dir, "none")}, "no such file"},
		"dump cannot write":               {[]string{"dump", "--url", "http://127.0.0.1:1", "--api-key-file", bad, "--output", dir}, "is a directory"},
		"there is an argument":            {[]string{"serve", "now"}, "unknown command"},
		"a key does not have three parts": {[]string{"serve", "--keys", shortKey(t)}, "must have the form consumer:token:secret"},
		"the keys cannot be written":      {[]string{"serve", "--keys", filepath.Join(dir, "no", "keys.json")}, "writing API keys"},
	}
	for name, test := range tests {
		t.Run("When "+name+", the error should say what to do", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := command()
			cmd.SetArgs(test.args)
			err := cmd.ExecuteContext(ctx)
			g := NewWithT(t)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(strings.Count(err.Error(), "\n")).To(BeNumerically("<=", 1))
		})
	}
}

func shortKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(path, []byte(`{"alice": "abc"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
