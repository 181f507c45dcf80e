# Not run in our CI. JupyterLab on the lessons, everything built inside:
#     docker build -t distributed-word2vec . && docker run --rm -it -p 127.0.0.1:8888:8888 distributed-word2vec
FROM python:3.11-bookworm
RUN useradd --create-home learner && install -d -o learner /home/learner/course
USER learner
WORKDIR /home/learner/course
COPY --chown=learner . .
RUN make setup
# 0.0.0.0 inside the container; -p above lets only this machine in
CMD [".venv/bin/jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb"]
