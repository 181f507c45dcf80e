# What each command does is in tools/; `make` lists them.
PYTHON ?= $(or $(shell for p in python3 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && echo $$p && break; done),python3)
RUN := PATH="$$PWD/.venv/bin:$$PATH" .venv/bin/python
LAB := $(if $(filter 0,$(shell id -u)),--allow-root) \
	$(if $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname)),,--no-browser)
QUICK := not (ranks or servers or browser or hosts or slow)
render = rm -rf build/$(2) build/source && mkdir -p build/source/notebooks && cp -Rp book/. docs figures examples README.md build/source && \
	cp -p $(1)/*.ipynb build/source/notebooks && $(RUN) -m sphinx -q -W --keep-going $(SPHINXOPTS) -b $(3) build/source build/$(2)
CHROMIUM ?= chromium

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

setup: ## build .venv if it is not there, which takes a few minutes (PYTHON=python3.12 chooses the Python)
	@$(PYTHON) tools/setup_venv.py

lab: setup ## open JupyterLab on lesson 00, the table of contents beside it
	@[ -d build/lab ] || $(RUN) -m jupyterlab workspaces import --LabWorkspaceImportApp.workspaces_dir=build/lab \
		tools/lab/beside_the_contents.json >/dev/null
	@$(RUN) -m jupyterlab --notebook-dir=. --ip=127.0.0.1 --LabApp.app_settings_dir="$$PWD/tools/lab" \
		--LabApp.workspaces_dir="$$PWD/build/lab" --LabApp.default_url=/lab/workspaces/course $(LAB)

run: setup ## execute every notebook, and render the book of what came out
	@rm -rf build/run; $(RUN) tools/run_notebooks.py; code=$$?; { [ $$code = 130 ] || { $(call render,build/run,book,html) && echo build/book/index.html; }; } && exit $$code

book: setup ## render the saved notebooks as a book: build/book/index.html
	@$(call render,notebooks,book,html) && echo build/book/index.html

epub: setup ## the same as an e-book: build/epub/distributed_word2vec.epub
	@$(call render,notebooks,epub,epub) && echo build/epub/distributed_word2vec.epub

pdf: setup ## the same on paper, some 600 pages, in three minutes: build/distributed_word2vec.pdf (needs Chromium)
	@$(call render,notebooks,one_page,singlehtml)
	@$(CHROMIUM) --headless --no-sandbox --disable-gpu --no-pdf-header-footer --generate-pdf-document-outline --timeout=600000 \
		--print-to-pdf=build/distributed_word2vec.pdf "file://$$PWD/build/one_page/index.html" 2>build/pdf.log || { cat build/pdf.log; exit 1; }
	@echo build/distributed_word2vec.pdf

slides: setup ## the core lessons as talks of 13 to 21 slides: build/slides/*.html
	@$(RUN) tools/slides.py

progress: setup ## your exercises, lesson by lesson: not tried, wrong with the hint, right
	@$(RUN) tools/my_lessons.py progress

fresh: setup ## a lesson as it was (LESSON=07); your copy goes to notebooks/mine
	@$(RUN) tools/my_lessons.py fresh $(LESSON)

screenshots: setup ## take the picture of JupyterLab in docs/commands.md anew (Debian's chromium)
	@$(RUN) tools/screenshots.py

quick: setup ## in two minutes: lint of code and lessons, and the tests that start no process
	@$(RUN) -m ruff check .
	@$(RUN) -m pytest -n 2 -q -m "$(QUICK)" tests

test: setup ## everything: lint, all tests, and every notebook against its saved outputs
	@$(RUN) -m ruff check .
	@rm -f .pytest_cache/v/cache/lastfailed
	@$(RUN) -m pytest --nbval -n 2 || { [ $$? = 1 ] && $(RUN) tools/judge_again.py; }

bench: setup ## the benchmarks, over an hour: benchmarks/results/*.json and figures of docs (TEXT=file: many_ranks, too)
	@$(RUN) -m benchmarks.batching --json benchmarks/results/batching.json
	@$(RUN) -m benchmarks.losses --json benchmarks/results/losses.json
	@$(RUN) -m benchmarks.allreduce --json benchmarks/results/allreduce.json
	@$(RUN) -m benchmarks.reducescatter --json benchmarks/results/reducescatter.json
	@$(RUN) -m benchmarks.strategies --json benchmarks/results/strategies.json
	@$(RUN) -m benchmarks.models --json benchmarks/results/models.json --figure figures/models.png
	@$(RUN) -m benchmarks.words_per_second --json benchmarks/results/words_per_second.json \
		--figure figures/words_per_second.png
	@[ -z "$(TEXT)" ] || $(RUN) -m benchmarks.many_ranks --corpus "$(TEXT)" --json benchmarks/results/many_ranks.json \
		--figure figures/many_ranks.png

clean: ## remove build/, .venv and all caches
	rm -rf build .venv .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -depth \( -name __pycache__ -o -name .ipynb_checkpoints \) -exec rm -rf {} +

.PHONY: help setup lab run book epub pdf slides progress fresh screenshots quick test bench clean
